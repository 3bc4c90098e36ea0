/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client and server prove to each other that they have the key, by the challenge and response of ISO/IEC 9798-4
 * (mutual, three passes) with the keyed hash HMAC-SHA-512-256 (RFC 2104, FIPS 180-4; libsodium's crypto_auth).
 *
 *	client's proof = H(key, "headrace client" ‖ hello ‖ challenge ‖ request without its proof)
 *	seal           = H(key, "headrace seal"   ‖ hello ‖ challenge ‖ request without its proof)
 *	server's proof = H(seal, welcome without its proof)
 *	report's proof, and that of the list of calls = H(seal, the message with a proof of zeros)
 *
 * As the labels differ, no hash can be used in the place of another. The daemon gives the worker the seal, not the key.
 * The seal is enough for the worker to make the server's proof.
 */
#ifndef RC_DOOR_PROOF_H
#define RC_DOOR_PROOF_H

#include "cuda_remote/door/wire.h"

struct door_proofs {
	uint8_t client[RC_DOOR_KEY_BYTES];
	uint8_t seal[RC_DOOR_KEY_BYTES];
};

/* -ENOTSUP: this build has no libsodium. */
int door_proofs(const rc_door_key_t *key, const struct door_hello *hello, const struct door_challenge *challenge,
		const struct door_request *request, struct door_proofs *proofs);
int door_welcome_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const struct door_welcome *welcome,
		       uint8_t proof[RC_DOOR_KEY_BYTES]);

/* A message of size bytes that follows the welcome: a report with its entries, or the list of calls. Its member proof is
 * 0. */
int door_message_proof(const uint8_t seal[RC_DOOR_KEY_BYTES], const void *message, size_t size,
		       uint8_t proof[RC_DOOR_KEY_BYTES]);

/* A fingerprint of a key: the keyed hash of a label. It distinguishes keys, but hides them. 0 without libsodium. */
void door_key_id(const rc_door_key_t *key, uint8_t id[RC_DOOR_KEY_ID_BYTES]);

/*
 * The keys of the encrypted channel, by HKDF (RFC 5869) with HMAC-SHA-512-256:
 *
 *	extracted = H(key, X25519 shared secret); without a key file, key is 32 zeros
 *	client to server: H(extracted, "headrace client stream" ‖ hello ‖ challenge ‖ request without its proof)
 *	server to client: H(extracted, "headrace server stream" ‖ the same)
 */
struct door_exchange {
	uint8_t secret[DOOR_EXCHANGE_BYTES];
};

/* A fresh pair. -ENOTSUP: this build has no libsodium. */
int door_exchange_begin(struct door_exchange *exchange, uint8_t public_key[DOOR_EXCHANGE_BYTES]);

/* key: NULL without a key file. server: true for the server's put and get keys, false for the client's. -EPROTO: the
 * peer's public key is invalid; -ENOTSUP. */
int door_exchange_keys(const struct door_exchange *exchange, const rc_door_key_t *key, const struct door_hello *hello,
		       const struct door_challenge *challenge, const struct door_request *request, bool server,
		       hr_cipher_keys_t *keys);

/* Compares in a time that does not depend on the contents. */
bool door_proof_equal(const uint8_t a[RC_DOOR_KEY_BYTES], const uint8_t b[RC_DOOR_KEY_BYTES]);

/* Overwrites a secret. */
void door_forget(void *secret, size_t size);

/* Random bytes from the kernel. */
int door_random(void *bytes, size_t size);

#endif
