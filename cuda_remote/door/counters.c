/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of reasons and causes. */
#include "cuda_remote/door/counters.h"

const char *rc_refused_name(enum rc_refused reason)
{
	static const char *const names[RC_REFUSED_KINDS] = {
		[RC_REFUSED_VERSION] = "version",
		[RC_REFUSED_DENIED] = "denied",
		[RC_REFUSED_ENCRYPTION] = "encryption",
		[RC_REFUSED_MALFORMED] = "malformed",
		[RC_REFUSED_DROPPED] = "dropped",
		[RC_REFUSED_NO_GPU] = "no_gpu",
		[RC_REFUSED_NO_SESSION] = "no_session",
		[RC_REFUSED_LIMIT] = "limit",
		[RC_REFUSED_EXCLUSIVE] = "exclusive",
		[RC_REFUSED_NO_WORKER] = "no_worker",
		[RC_REFUSED_ENDING] = "ending",
		[RC_REFUSED_FAILED] = "failed",
	};
	return names[reason];
}

const char *rc_exit_name(enum rc_exit cause)
{
	static const char *const names[RC_EXIT_KINDS] = {
		[RC_EXIT_CLIENT] = "client_gone",
		[RC_EXIT_ERROR] = "error",
		[RC_EXIT_SIGNAL] = "signal",
		[RC_EXIT_FILTER] = "system_call",
		[RC_EXIT_START] = "start_failed",
		[RC_EXIT_UNUSED] = "unused",
		[RC_EXIT_DAEMON] = "daemon",
	};
	return names[cause];
}
