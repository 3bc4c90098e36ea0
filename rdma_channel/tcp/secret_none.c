/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of secret.h for a build without libsodium: a connection with keys cannot be opened. */
#include "rdma_channel/tcp/secret.h"

#include <errno.h>

bool hr_secret_supported(void)
{
	return false;
}

int hr_secret_open(const hr_cipher_keys_t *keys, struct hr_secret **secret)
{
	(void)keys, (void)secret;
	return -ENOTSUP;
}

void hr_secret_close(struct hr_secret *secret)
{
	(void)secret;
}

size_t hr_secret_bytes(void)
{
	return 0;
}

/* The functions below are never called, as hr_secret_open always fails. */

int hr_secret_put(struct hr_secret *secret, int stream, struct hr_iov_place place, size_t *accepted)
{
	(void)secret, (void)stream, (void)place, (void)accepted;
	return ENOTSUP;
}

int hr_secret_finish(struct hr_secret *secret, int stream)
{
	(void)secret, (void)stream;
	return 1;
}

int hr_secret_fill(struct hr_secret *secret, int stream)
{
	(void)secret, (void)stream;
	return ENOTSUP;
}

int hr_secret_deliver(struct hr_secret *secret, struct hr_iov_place *place, size_t *delivered)
{
	(void)secret, (void)place, (void)delivered;
	return -EPROTO;
}

bool hr_secret_ready(const struct hr_secret *secret)
{
	(void)secret;
	return false;
}

bool hr_secret_is_final(struct hr_secret *secret)
{
	(void)secret;
	return false;
}
