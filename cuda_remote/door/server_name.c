/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and prints the names of servers. */
#define _GNU_SOURCE /* memrchr */
#include "cuda_remote/door/server_name.h"

#include "rdma_channel/base/log.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const char *part, size_t length, const char *what)
{
	hr_log(HR_LOG_ERROR, "server \"%.*s\": %s", (int)length, part, what);
	return -EINVAL;
}

/* Decimal digits only, at most max. */
static bool parse_number(const char *text, size_t length, uint32_t max, uint32_t *number)
{
	uint64_t value = 0;
	if (!length)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
		if (value > max)
			return false;
	}
	*number = (uint32_t)value;
	return true;
}

static int parse_path(const char *part, size_t length, rc_server_t *server)
{
	const char *path = part + strlen("unix:");
	size_t n = length - strlen("unix:");
	if (!n)
		return complain(part, length, "the socket's path is missing");
	if (n >= sizeof server->path)
		return complain(part, length, "the socket's path is longer than the kernel allows (107 bytes)");
	memcpy(server->path, path, n);
	return 0;
}

/* Only characters that names and addresses have. The host name "unix" is not allowed, as "unix:" begins a path. */
static bool is_host(const char *host, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)host[i]) && !(host[i] && strchr(".-_:%", host[i])))
			return false;
	return length != 4 || memcmp(host, "unix", 4);
}

static int parse_host(const char *part, size_t length, rc_server_t *server)
{
	const char *host = part, *end = part + length, *colon;
	size_t n;
	if (*part == '[') {
		const char *bracket = memchr(part, ']', length);
		if (!bracket)
			return complain(part, length, "\"]\" is missing");
		host = part + 1;
		n = (size_t)(bracket - host);
		colon = bracket + 1;
		if (colon != end && *colon != ':')
			return complain(part, length, "want [ADDRESS]:PORT");
	} else {
		colon = memchr(part, ':', length);
		if (!colon)
			colon = end;
		else if (memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			return complain(part, length, "an IPv6 address goes in brackets: [ADDRESS]:PORT");
		n = (size_t)(colon - part);
	}
	if (!n || n > RC_SERVER_NAME_MAX)
		return complain(part, length, "the host's name is missing or too long");
	if (!is_host(host, n))
		return complain(part, length, "want HOST[:PORT][/GPU] or unix:PATH");
	memcpy(server->host, host, n);
	uint32_t port = RC_DOOR_PORT;
	if (colon != end && (!parse_number(colon + 1, (size_t)(end - colon - 1), 65535, &port) || !port))
		return complain(part, length, "the port is a number from 1 to 65535");
	server->port = (uint16_t)port;
	return 0;
}

static int parse_place(const char *part, size_t length, rc_server_t *server)
{
	memset(server, 0, sizeof *server);
	server->gpu = RC_SERVER_ALL_GPUS;
	if (!length)
		return complain(part, length, "the name is empty");
	if (length >= 5 && !memcmp(part, "unix:", 5))
		return parse_path(part, length, server);
	return parse_host(part, length, server);
}

/* Removes "/gpu" from the end and parses it. In a path it is a GPU only if digits follow the last slash. */
static int parse_server(const char *part, size_t length, rc_server_t *server)
{
	uint32_t gpu = RC_SERVER_ALL_GPUS;
	size_t place = length;
	const char *slash = memrchr(part, '/', length);
	if (slash) {
		size_t digits = length - (size_t)(slash + 1 - part);
		bool path = length >= 5 && !memcmp(part, "unix:", 5);
		if (parse_number(slash + 1, digits, RC_SERVER_ALL_GPUS - 1, &gpu))
			place = (size_t)(slash - part);
		else if (!path)
			return complain(part, length, "the GPU after \"/\" is a number, counted from 0");
	}
	int error = parse_place(part, place, server);
	if (!error)
		server->gpu = gpu;
	return error;
}

int rc_server_parse(const char *text, rc_server_t *servers, size_t max, size_t *n)
{
	size_t count = 0;
	for (const char *part = text;; part++) {
		size_t length = strcspn(part, ",");
		if (count == max) {
			hr_log(HR_LOG_ERROR, "server list: more than %zu servers", max);
			return -E2BIG;
		}
		int error = parse_server(part, length, &servers[count]);
		if (error)
			return error;
		count++;
		part += length;
		if (!*part)
			break;
	}
	*n = count;
	return 0;
}

int rc_server_parse_place(const char *text, rc_server_t *server)
{
	rc_server_t parsed;
	int error = parse_place(text, strlen(text), &parsed);
	if (!error)
		*server = parsed;
	return error;
}

char *rc_server_name(const rc_server_t *server, char *buffer, size_t size)
{
	if (*server->path)
		snprintf(buffer, size, "unix:%s", server->path);
	else if (strchr(server->host, ':'))
		snprintf(buffer, size, "[%s]:%u", server->host, server->port);
	else
		snprintf(buffer, size, "%s:%u", server->host, server->port);
	return buffer;
}

int rc_server_default_socket(char *buffer, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;
	if (geteuid() == 0)
		n = snprintf(buffer, size, "/run/headrace/headraced.sock");
	else if (runtime && *runtime == '/')
		n = snprintf(buffer, size, "%s/headrace/headraced.sock", runtime);
	else
		n = snprintf(buffer, size, "/tmp/headrace-%u/headraced.sock", (unsigned)geteuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

void rc_server_unix_address(const char *path, struct sockaddr_un *address, socklen_t *length)
{
	size_t n = strnlen(path, sizeof address->sun_path);
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, n);
	if (*path == '@')
		address->sun_path[0] = 0;
	/* An abstract name ends with the length, a path with a NUL. */
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path != '@'));
}
