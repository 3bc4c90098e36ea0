/* SPDX-License-Identifier: BSD-3-Clause */
/* Proofs of a build without libsodium: none. So it supports no key files, and no clients on other hosts. */
#include "cuda_remote/door/proof.h"

#include <errno.h>
#include <string.h>

bool rc_door_keys_supported(void)
{
	return false;
}

int door_proofs(const rc_door_key_t *key, const struct door_hello *hello, const struct door_challenge *challenge,
		const struct door_request *request, struct door_proofs *proofs)
{
	(void)key, (void)hello, (void)challenge, (void)request, (void)proofs;
	return -ENOTSUP;
}

int door_welcome_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const struct door_welcome *welcome,
		       uint8_t proof[RC_DOOR_KEY_BYTES])
{
	(void)seal, (void)welcome, (void)proof;
	return -ENOTSUP;
}

int door_message_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const void *message, size_t size,
		       uint8_t proof[RC_DOOR_KEY_BYTES])
{
	(void)seal, (void)message, (void)size, (void)proof;
	return -ENOTSUP;
}

void door_key_id(const rc_door_key_t *key, uint8_t id[RC_DOOR_KEY_ID_BYTES])
{
	(void)key;
	memset(id, 0, RC_DOOR_KEY_ID_BYTES);
}

int door_exchange_begin(struct door_exchange *exchange, uint8_t public_key[DOOR_EXCHANGE_BYTES])
{
	(void)exchange, (void)public_key;
	return -ENOTSUP;
}

int door_exchange_keys(const struct door_exchange *exchange, const rc_door_key_t *key, const struct door_hello *hello,
		       const struct door_challenge *challenge, const struct door_request *request, bool server,
		       hr_cipher_keys_t *keys)
{
	(void)exchange, (void)key, (void)hello, (void)challenge, (void)request, (void)server, (void)keys;
	return -ENOTSUP;
}

bool door_proof_equal(const uint8_t a[RC_DOOR_KEY_BYTES], const uint8_t b[RC_DOOR_KEY_BYTES])
{
	(void)a, (void)b;
	return false;
}

void rc_door_secret_proof(const uint8_t *secret, const char *label, const void *bytes, size_t size,
			  uint8_t proof[RC_DOOR_KEY_BYTES])
{
	(void)label, (void)bytes, (void)size;
	memcpy(proof, secret, RC_DOOR_KEY_BYTES);
}
