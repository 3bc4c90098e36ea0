/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without libmunge or without libsodium, whose hashes the proofs need: no credentials of MUNGE. */
#include "cuda_remote/door/munge.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdio.h>

bool rc_door_munge_supported(void)
{
	return false;
}

int door_munge_encode(uid_t server, rc_door_key_t *secret, char credential[DOOR_CREDENTIAL_BYTES])
{
	(void)server, (void)secret, (void)credential;
	hr_log(HR_LOG_ERROR, "HEADRACE_CREDENTIAL=munge, and this build has no MUNGE: it needs libmunge and libsodium");
	return -ENOTSUP;
}

void door_munge_decode(const char credential[DOOR_CREDENTIAL_BYTES], struct door_munge_result *result)
{
	(void)credential;
	*result = (struct door_munge_result){ .number = result->number, .error = -ENOTSUP, .uid = (uid_t)-1 };
	snprintf(result->text, sizeof result->text, "the server's build has no MUNGE");
}
