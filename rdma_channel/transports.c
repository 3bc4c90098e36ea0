/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports of this build, best first. */
#include "config.h"

#include "rdma_channel/transport.h"

const struct hr_transport *const hr_transports[] = {
	&hr_transport_shm,
#ifdef HAVE_IBVERBS
	&hr_transport_verbs,
#endif
	&hr_transport_tcp,
	NULL,
};
