/* SPDX-License-Identifier: BSD-3-Clause */
/* Small copies that are sent with their bytes before the stream reaches them. */
#ifndef RC_CLIENT_EARLY_H
#define RC_CLIENT_EARLY_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_copy;
struct rc_link;
struct rc_session;

/* True if an asynchronous copy of this many bytes may be sent now although a kernel may hold its stream. The source is pinned
 * memory that no earlier work writes. */
bool rc_early_suits(const struct rc_session *session, uint64_t bytes);
/* Sends such a copy. host: the source, which the worker must not have mapped. *sent: false if too many copies are under way. */
CUresult rc_early_copy(struct rc_link *link, const struct rc_wire_box *box, const struct rc_copy *host, uint64_t stream,
		       bool *sent);
/* Called before a call gets its number. Sends the sources that have changed, if the call could let a copy's stream go on. */
CUresult rc_early_before(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* Sends the sources that have changed. Called before the client tells the worker that a host function has ended, because a stream
 * goes on then. */
CUresult rc_early_host_done(struct rc_session *session);
/* True if such a copy reads these bytes, and is not in this stream of this session (a handle; CUDA's own streams count as other
 * ones). */
bool rc_early_reads(const struct rc_session *own, uint64_t stream, uint64_t address, uint64_t size);
/* The work of the stream (rc_track_stream; RC_TRACK_SEVERAL: of none) up to this call is complete, or that of all streams
 * (rc_link_settled). */
void rc_early_end(struct rc_session *session, uint64_t stream, uint64_t number);
/* The memory is the program's again, which may unmap it. */
void rc_early_forget(uint64_t address, uint64_t size);
/* A context of the session has ended, and its copies with it. The program may unmap memory that it had registered there. */
void rc_early_context_ended(struct rc_session *session);

#endif
