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

int door_message_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const void *message, size_t size,
		       uint8_t proof[RC_DOOR_KEY_BYTES])
{
	crypto_auth_hmacsha512256(proof, message, size, seal);
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

_Static_assert(crypto_scalarmult_BYTES == DOOR_EXCHANGE_BYTES, "exchange size");
_Static_assert(HR_CIPHER_KEY_BYTES == RC_DOOR_KEY_BYTES, "stream key size");

int door_exchange_begin(struct door_exchange *exchange, uint8_t public_key[DOOR_EXCHANGE_BYTES])
{
	int error = door_random(exchange->secret, sizeof exchange->secret);
	if (!error && crypto_scalarmult_base(public_key, exchange->secret))
		error = -EIO;
	return error;
}

int door_exchange_keys(const struct door_exchange *exchange, const rc_door_key_t *key, const struct door_hello *hello,
		       const struct door_challenge *challenge, const struct door_request *request, bool server,
		       hr_cipher_keys_t *keys)
{
	static const rc_door_key_t none;
	uint8_t shared[crypto_scalarmult_BYTES];
	rc_door_key_t extracted;
	/* Fails for a public key that makes every shared secret 0. */
	if (crypto_scalarmult(shared, exchange->secret, server ? hello->public_key : challenge->public_key))
		return -EPROTO;
	crypto_auth_hmacsha512256(extracted.bytes, shared, sizeof shared, key ? key->bytes : none.bytes);
	hash_handshake("headrace client stream", &extracted, hello, challenge, request, server ? keys->get : keys->put);
	hash_handshake("headrace server stream", &extracted, hello, challenge, request, server ? keys->put : keys->get);
	sodium_memzero(shared, sizeof shared);
	sodium_memzero(&extracted, sizeof extracted);
	return 0;
}

bool door_proof_equal(const uint8_t a[RC_DOOR_KEY_BYTES], const uint8_t b[RC_DOOR_KEY_BYTES])
{
	return sodium_memcmp(a, b, RC_DOOR_KEY_BYTES) == 0;
}

void rc_door_secret_proof(const uint8_t *secret, const char *label, const void *bytes, size_t size,
			  uint8_t proof[RC_DOOR_KEY_BYTES])
{
	crypto_auth_hmacsha512256_state state;
	crypto_auth_hmacsha512256_init(&state, secret, RC_DOOR_KEY_BYTES);
	crypto_auth_hmacsha512256_update(&state, (const unsigned char *)label, strlen(label) + 1);
	crypto_auth_hmacsha512256_update(&state, bytes, size);
	crypto_auth_hmacsha512256_final(&state, proof);
	sodium_memzero(&state, sizeof state);
}
