/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: MPI 5.0, section 11.3. */
#ifndef ADI_CORE_SESSION_H
#define ADI_CORE_SESSION_H

#include "adi/core/info.h"

struct adi_buffer;

struct adi_session {
	struct adi_object object;
	struct adi_errhandler *errhandler; /* holds a reference */
	struct adi_info *info;             /* what MPI_Session_get_info returns; owned */
	struct adi_buffer *buffer;         /* message/: attached with MPI_Session_attach_buffer; NULL: none */
};

/* mpi_group_from_session_pset returns adi_group_of_session(group, session) (comm/comm.h), so that buffered sends on communicators
 * of the session find its buffer. */
int adi_session_take(MPI_Session handle, const char *argument, struct adi_session **found);

#endif
