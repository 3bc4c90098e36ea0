/* SPDX-License-Identifier: BSD-3-Clause */
/* Proofs by libsodium. */
#include "cuda_remote/door/proof.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

_Static_assert(crypto_auth_hmacsha512256_BYTES == RC_DOOR_KEY_BYTES, "proof size");
_Static_assert(crypto_auth_hmacsha512256_KEYBYTES == RC_DOOR_KEY_BYTES, "key size");

bool rc_door_keys_supported(void)
{
	return true;
}

static void hash_handshake(const char *label, const rc_door_key_t *key, const struct door_hello *hello,
		       const struct door_challenge *challenge, const struct door_request *request, uint8_t *out)
{
	crypto_auth_hmacsha512256_state state;
	crypto_auth_hmacsha512256_init(&state, key->bytes, sizeof key->bytes);
	crypto_auth_hmacsha512256_update(&state, (const unsigned char *)label, strlen(label) + 1);
	crypto_auth_hmacsha512256_update(&state, (const unsigned char *)hello, sizeof *hello);
	crypto_auth_hmacsha512256_update(&state, (const unsigned char *)challenge, sizeof *challenge);
	crypto_auth_hmacsha512256_update(&state, (const unsigned char *)request,
					 offsetof(struct door_request, proof));
	crypto_auth_hmacsha512256_final(&state, out);
	sodium_memzero(&state, sizeof state);
}

int door_proofs(const rc_door_key_t *key, const struct door_hello *hello, const struct door_challenge *challenge,
		const struct door_request *request, struct door_proofs *proofs)
{
	hash_handshake("headrace client", key, hello, challenge, request, proofs->client);
	hash_handshake("headrace seal", key, hello, challenge, request, proofs->seal);
	return 0;
}

int door_welcome_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const struct door_welcome *welcome,
		       uint8_t proof[RC_DOOR_KEY_BYTES])
{
	crypto_auth_hmacsha512256(proof, (const unsigned char *)welcome, offsetof(struct door_welcome, proof), seal);
	return 0;
}

int door_report_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const struct door_report *report, size_t size,
		      uint8_t proof[RC_DOOR_KEY_BYTES])
{
	crypto_auth_hmacsha512256(proof, (const unsigned char *)report, size, seal);
	return 0;
}

void door_key_id(const rc_door_key_t *key, uint8_t id[RC_DOOR_KEY_ID_BYTES])
{
	static const unsigned char label[] = "headrace key id";
	uint8_t hash[RC_DOOR_KEY_BYTES];
	crypto_auth_hmacsha512256(hash, label, sizeof label, key->bytes);
	memcpy(id, hash, RC_DOOR_KEY_ID_BYTES);
	sodium_memzero(hash, sizeof hash);
}

bool door_proof_equal(const uint8_t a[RC_DOOR_KEY_BYTES], const uint8_t b[RC_DOOR_KEY_BYTES])
{
	return sodium_memcmp(a, b, RC_DOOR_KEY_BYTES) == 0;
}
