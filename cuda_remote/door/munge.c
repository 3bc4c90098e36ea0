/* SPDX-License-Identifier: BSD-3-Clause */
/* Credentials by libmunge. */
#include "cuda_remote/door/munge.h"

#include "cuda_remote/door/proof.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HR_SETTING(socket_setting, "HEADRACE_MUNGE_SOCKET", "", 0, 0, "socket of munged; empty: libmunge's default");

#define TTL_S 60 /* a credential is used at once; the rest is for clocks that differ */

bool rc_door_munge_supported(void)
{
	return true;
}

/* NULL: no memory. */
static munge_ctx_t context(void)
{
	munge_ctx_t context = munge_ctx_create();
	const char *socket = hr_setting_text(&socket_setting);
	if (context && *socket && munge_ctx_set(context, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(context);
		context = NULL;
	}
	return context;
}

/* What went wrong, as text for users. */
static const char *fault(munge_ctx_t context, munge_err_t error)
{
	const char *text = munge_ctx_strerror(context);
	return text ? text : munge_strerror(error);
}

static munge_err_t encode(munge_ctx_t context, uid_t server, const rc_door_key_t *secret, char **credential)
{
	munge_err_t error = munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, server);
	if (error == EMUNGE_SUCCESS)
		error = munge_ctx_set(context, MUNGE_OPT_TTL, TTL_S);
	/* The default is munged's choice, and that may be no encryption. */
	if (error == EMUNGE_SUCCESS)
		error = munge_ctx_set(context, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES128);
	return error == EMUNGE_SUCCESS ? munge_encode(credential, context, secret->bytes, sizeof secret->bytes) : error;
}

int door_munge_encode(uid_t server, rc_door_key_t *secret, char credential[DOOR_CREDENTIAL_BYTES])
{
	char *text = NULL;
	munge_ctx_t with = context();
	if (!with || door_random(secret->bytes, sizeof secret->bytes)) {
		munge_ctx_destroy(with);
		return -ENOMEM;
	}
	munge_err_t error = encode(with, server, secret, &text);
	bool fits = error == EMUNGE_SUCCESS && strlen(text) < DOOR_CREDENTIAL_BYTES;
	if (error != EMUNGE_SUCCESS)
		hr_log(HR_LOG_ERROR, "MUNGE makes no credential: %s: is munged running on this host?", fault(with, error));
	else if (!fits)
		hr_log(HR_LOG_ERROR, "MUNGE's credential has %zu bytes; at most %d are possible", strlen(text),
		       DOOR_CREDENTIAL_BYTES - 1);
	if (fits) {
		memset(credential, 0, DOOR_CREDENTIAL_BYTES);
		memcpy(credential, text, strlen(text));
	}
	free(text);
	munge_ctx_destroy(with);
	return fits ? 0 : -EACCES;
}

/* Errors of the credential, in contrast to those of munged. */
static bool is_invalid(munge_err_t error)
{
	return error >= EMUNGE_BAD_CRED;
}

/* Why a credential that munged has decoded is not accepted; NULL: it is. */
static const char *payload_fault(munge_ctx_t context, int length, uid_t uid)
{
	int cipher = MUNGE_CIPHER_NONE;
	if (munge_ctx_get(context, MUNGE_OPT_CIPHER_TYPE, &cipher) != EMUNGE_SUCCESS || cipher == MUNGE_CIPHER_NONE)
		return "the credential is not encrypted";
	if (length != RC_DOOR_KEY_BYTES)
		return "the credential is not Headrace's";
	return uid == (uid_t)-1 ? "the credential names no user" : NULL;
}

static void refuse(struct door_munge_result *result, int error, const char *format, const char *text)
{
	result->error = error;
	snprintf(result->text, sizeof result->text, format, text);
}

void door_munge_decode(const char credential[DOOR_CREDENTIAL_BYTES], struct door_munge_result *result)
{
	void *payload = NULL;
	int length = 0;
	gid_t gid;
	munge_ctx_t with = context();
	*result = (struct door_munge_result){ .number = result->number, .uid = (uid_t)-1 };
	if (!with) {
		refuse(result, -EIO, "%s", "the server is out of memory");
		return;
	}
	munge_err_t error = munge_decode(credential, with, &payload, &length, &result->uid, &gid);
	const char *why = error == EMUNGE_SUCCESS ? payload_fault(with, length, result->uid) : NULL;
	if (is_invalid(error)) {
		refuse(result, -EACCES, "MUNGE: %s", fault(with, error));
	} else if (error != EMUNGE_SUCCESS) {
		hr_log(HR_LOG_ERROR, "MUNGE: %s: is munged running on this host?", fault(with, error));
		refuse(result, -EIO, "%s", "MUNGE does not work on the server: its log says why");
	} else if (why) {
		refuse(result, -EACCES, "MUNGE: %s", why);
	} else {
		memcpy(result->secret.bytes, payload, sizeof result->secret.bytes);
	}
	if (payload)
		door_forget(payload, (size_t)length);
	free(payload);
	munge_ctx_destroy(with);
}
