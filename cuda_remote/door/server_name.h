/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of servers and GPUs, as in HEADRACE_SERVER and headrace-run -s:
 *
 *	list   = server *("," server)
 *	server = place ["/" gpu]
 *	place  = host [":" port] | "[" ipv6 "]" [":" port] | "unix:" path
 *
 * A path that begins with "@" is an abstract Unix socket's name, for which there is no file. gpu is the server's index
 * of the GPU; without it, all of the server's GPUs are meant. In a path, only a last "/" followed by digits is a GPU
 * ("unix:/run/a.sock/1"), so the name of a socket file may not consist of digits alone.
 */
#ifndef RC_SERVER_NAME_H
#define RC_SERVER_NAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RC_DOOR_PORT 27180   /* headraced's default port */
#define RC_SERVER_NAME_MAX 255
#define RC_SERVER_MAX 64     /* servers of one list */
#define RC_SERVER_ALL_GPUS UINT32_MAX

typedef struct rc_server {
	char path[108];                    /* Unix socket's file or "@" name; "" for a network server */
	char host[RC_SERVER_NAME_MAX + 1]; /* name or address without brackets; "" for a Unix socket */
	uint16_t port;                     /* host byte order; RC_DOOR_PORT if the text has none */
	uint32_t gpu;                      /* index or RC_SERVER_ALL_GPUS */
} rc_server_t;

/*
 * Parses a list. Writes at most max entries; *n is their number. An empty list is an error.
 * -EINVAL: not such a list (the log names the part and the fault); -E2BIG: more than max.
 */
int rc_server_parse(const char *text, rc_server_t *servers, size_t max, size_t *n);

/* Parses one place (no GPU). As above. */
int rc_server_parse_place(const char *text, rc_server_t *server);

/* The server's name for messages, "host:port", "[ipv6]:port" or "unix:path"; cut to size. Returns buffer. */
char *rc_server_name(const rc_server_t *server, char *buffer, size_t size);

/* The default path of the socket of this user's daemon (as root: of the system's daemon):
 * /run/headrace/headraced.sock for root, else headrace/headraced.sock in XDG_RUNTIME_DIR, else in /tmp/headrace-UID.
 * -ENAMETOOLONG. */
int rc_server_default_socket(char *buffer, size_t size);

/* The socket address of a path; *length for bind and connect. */
void rc_server_unix_address(const char *path, struct sockaddr_un *address, socklen_t *length);

#endif
