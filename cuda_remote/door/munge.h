/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credentials of MUNGE (libmunge, munged): the munged of the client's host encrypts a secret together with the client's
 * user, and the munged of the server's host, which has the same key, decrypts both, once. Only the user that the client
 * names, the server's, gets the secret. So the secret takes the place of the key file's key in this handshake: the
 * client's proof shows that the credential was made for it, and the server's proof shows that the server could decode the
 * credential.
 */
#ifndef RC_DOOR_MUNGE_H
#define RC_DOOR_MUNGE_H

#include "cuda_remote/door/wire.h"

/* Makes a credential with a fresh secret that only this user of the server can decode. Blocks until munged answers.
 * -ENOTSUP: this build has no MUNGE; -EACCES: munged does not make one. Logged. */
int door_munge_encode(uid_t server, rc_door_key_t *secret, char credential[DOOR_CREDENTIAL_BYTES]);

struct door_munge_result {
	uint64_t number;      /* of the question */
	int error;            /* 0; -EACCES: the credential is not valid; -EIO: munged does not answer; or as above */
	uid_t uid;            /* of the client */
	rc_door_key_t secret;
	char text[RC_DOOR_TEXT_MAX]; /* of an error */
};

/* Decodes a credential. Blocks until munged answers, 10 s or so if it hangs. Sets all members but number. */
void door_munge_decode(const char credential[DOOR_CREDENTIAL_BYTES], struct door_munge_result *result);

/* ---- munge_queue.c: a thread that decodes, so that the daemon does not wait. These functions are for one thread ---- */

struct door_munge_queue;

int door_munge_open(struct door_munge_queue **queue);
/* Readable when a result is there. */
int door_munge_fd(const struct door_munge_queue *queue);
/* -EAGAIN: too many questions are open. */
int door_munge_ask(struct door_munge_queue *queue, uint64_t number, const char credential[DOOR_CREDENTIAL_BYTES]);
/* True: *result is set. Results come in the order of the questions. */
bool door_munge_take(struct door_munge_queue *queue, struct door_munge_result *result);
/* Does not wait for the thread, which ends after its question. NULL is allowed. */
void door_munge_close(struct door_munge_queue *queue);

#endif
