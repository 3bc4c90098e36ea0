/* SPDX-License-Identifier: BSD-3-Clause */
/* What the door's tests share. Every function fails the running test case if something unexpected happens. */
#ifndef TEST_CUDA_DOOR_DOOR_KIT_H
#define TEST_CUDA_DOOR_DOOR_KIT_H

#include "cuda_remote/door/wire.h"

#include <check.h>
#include <pthread.h>

/* Of the running test case: an empty folder but for two key files, if the build supports keys. */
extern char folder[64];
extern char key_path[96], other_key_path[96];

/* A server in a thread of its own that welcomes every client that the door lets in. A request for GPU 5 is refused. */
struct test_server {
	rc_door_t *door;
	pthread_t thread;
	int stop[2];
	rc_server_t place;   /* the first address it listens at */
	rc_door_peer_t last; /* the last client let in; written before the client's connect returns */
};

extern const hr_card_t client_card;    /* the card that client_connect sends */
extern rc_door_report_t server_report; /* what the server answers to RC_DOOR_REPORT */

/* Addresses: a Unix socket in the folder, a free TCP port of loopback. */
rc_server_t unix_place(const char *name);
rc_server_t tcp_place(void);

/* Start at n addresses, or at one. server_stop ends the thread and closes the door. */
void server_start_at(struct test_server *server, const rc_server_t *places, int n, const rc_door_policy_t *policy);
void server_start(struct test_server *server, rc_server_t place, const rc_door_policy_t *policy);
void server_stop(struct test_server *server);

/* A policy with the key of that file. */
rc_door_policy_t key_policy(const char *path);

/* Connects as a client and closes the connection. key_file may be NULL. Returns what rc_door_connect returns. */
int client_connect(rc_server_t place, enum rc_door_purpose purpose, const char *key_file, rc_door_welcome_t *welcome);

/* Sockets without the door's protocol: a listening and a connected Unix socket, a connected TCP socket. */
int listen_raw(rc_server_t place);
int connect_raw(rc_server_t place);
int connect_tcp(rc_server_t place);

/* A hello that a server of this build accepts. */
struct door_hello good_hello(void);

/* The cases of each file: adds them to tests. */
void add_entering(TCase *tests);
void add_keys(TCase *tests);
void add_encryption(TCase *tests);
void add_bad_servers(TCase *tests);
void add_bad_clients(TCase *tests);
void add_listening(TCase *tests);

/* Runs the cases that the n functions add. Returns the program's exit status. */
int run_cases(const char *name, void (*const add[])(TCase *tests), int n);

#endif
