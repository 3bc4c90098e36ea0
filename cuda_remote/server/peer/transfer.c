/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives the bytes of a transfer. The source fills its buffers ahead of the connection, and the target starts the
 * copy to the device while the connection brings the next bytes. Nothing that arrives is trusted: the bytes of a frame must
 * be the next ones of the transfer that the client has named.
 *
 * The target never waits for room for a note while the source may wait for room for bytes: both would wait for ever.
 */
#include "cuda_remote/server/peer/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_SEEN_MS 500 /* after this time at the latest a wait sees that its limit is shorter */

/* ---- the connection ---- */

int peer_notes_get(struct peer_pipe *pipe)
{
	for (;;) {
		struct iovec rest = { (uint8_t *)&pipe->note + pipe->note_got, sizeof pipe->note - pipe->note_got };
		size_t delivered;
		int error = hr_channel_get(pipe->connection.conn, &rest, 1, &delivered);
		if (error || !delivered)
			return error;
		pipe->note_got += delivered;
		if (pipe->note_got < sizeof pipe->note)
			continue;
		pipe->note_got = 0;
		error = pipe->on_note ? pipe->on_note(pipe->context, &pipe->note) : -EPROTO;
		if (error)
			return error;
	}
}

/* In ms; negative: for ever. The limit of a trial may become shorter while the trial waits. */
static int64_t time_left(const struct peer_pipe *pipe)
{
	int64_t until = pipe->until, sooner = peer_trials_until();
	if (!until)
		return -1;
	int64_t left = (sooner && sooner < until ? sooner : until) - peer_now_ms();
	return left < 0 ? 0 : left;
}

static int wait_for(struct peer_pipe *pipe, bool put)
{
	int64_t left = time_left(pipe);
	if (!left)
		return -ETIMEDOUT;
	if (left > LIMIT_SEEN_MS)
		left = LIMIT_SEEN_MS;
	int waited = hr_channel_wait(pipe->connection.channel, put, (int)left);
	return waited < 0 ? waited : 0;
}

/* The source waits for room. A note that has come would end the wait at once, so notes are read first. */
static int wait_for_room(struct peer_pipe *pipe)
{
	int error = pipe->on_note ? peer_notes_get(pipe) : 0;
	return error ? error : wait_for(pipe, true);
}

int peer_notes_await(struct peer_pipe *pipe, const bool *come)
{
	int error = 0;
	while (!*come && !error) {
		error = peer_notes_get(pipe);
		if (!error && !*come)
			error = wait_for(pipe, false);
	}
	return error;
}

static int put_all(struct peer_pipe *pipe, const void *head, size_t head_bytes, const void *bytes, size_t size)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)head, head_bytes }, { (void *)(uintptr_t)bytes, size } };
	int first = 0, error = 0;
	while (!error && first < 2) {
		size_t accepted;
		error = hr_channel_put(pipe->connection.conn, iov + first, 2 - first, &accepted);
		if (!error && !accepted && iov[first].iov_len)
			error = wait_for_room(pipe);
		while (!error && first < 2 && accepted >= iov[first].iov_len) {
			accepted -= iov[first].iov_len;
			first++;
		}
		if (!error && first < 2 && accepted) {
			iov[first].iov_base = (uint8_t *)iov[first].iov_base + accepted;
			iov[first].iov_len -= accepted;
		}
	}
	return error;
}

static int get_all(struct peer_pipe *pipe, void *to, size_t size)
{
	for (size_t got = 0; got < size;) {
		struct iovec rest = { (uint8_t *)to + got, size - got };
		size_t delivered;
		int error = hr_channel_get(pipe->connection.conn, &rest, 1, &delivered);
		if (!error && !delivered)
			error = wait_for(pipe, false);
		if (error)
			return error;
		got += delivered;
	}
	return 0;
}

/* ---- the source ---- */

struct sending {
	struct peer_way way;
	uint64_t bytes, issued, sent;
	unsigned ahead, next; /* buffers that are filled or being filled; the first of them */
	uint64_t length[RC_PEER_BUFFERS_MAX];
};

/* Starts copies into the buffers that are free. */
static CUresult fill(struct sending *s)
{
	CUresult result = CUDA_SUCCESS;
	while (s->issued < s->bytes && s->ahead < s->way.buffers && result == CUDA_SUCCESS) {
		unsigned buffer = (s->next + s->ahead) % s->way.buffers;
		s->length[buffer] = rc_box_part(&s->way.box, s->issued, s->way.chunk);
		result = peer_way_copy(&s->way, buffer, s->issued, s->length[buffer], false);
		s->issued += s->length[buffer];
		s->ahead++;
	}
	return result;
}

/* The next bytes, in a buffer or where they are. */
static CUresult next_part(struct sending *s, const uint8_t **from, uint64_t *len)
{
	if (s->way.way == RC_PEER_BY_NONE) {
		*from = (const uint8_t *)(uintptr_t)(s->way.box.device + s->sent);
		*len = s->bytes - s->sent < s->way.chunk ? s->bytes - s->sent : s->way.chunk;
		return CUDA_SUCCESS;
	}
	CUresult result = fill(s);
	if (result == CUDA_SUCCESS)
		result = peer_way_wait(&s->way, s->next);
	*from = s->way.memory + s->next * s->way.chunk;
	*len = s->length[s->next];
	return result;
}

static int send_parts(struct peer_pipe *pipe, uint64_t transfer, struct sending *s, CUresult *result)
{
	while (s->sent < s->bytes) {
		const uint8_t *from;
		uint64_t len;
		*result = next_part(s, &from, &len);
		if (*result != CUDA_SUCCESS)
			return 0;
		struct rc_wire_peer_frame frame = { transfer, s->bytes, s->sent, (uint32_t)len, CUDA_SUCCESS };
		int error = put_all(pipe, &frame, sizeof frame, from, len);
		if (error)
			return error;
		s->sent += len;
		if (s->way.way != RC_PEER_BY_NONE) {
			s->next = (s->next + 1) % s->way.buffers;
			s->ahead--;
		}
	}
	return 0;
}

int peer_transfer_send(struct peer_pipe *pipe, const struct peer_job *job, CUresult *result)
{
	struct sending s = { .bytes = 0 };
	int error = 0;
	*result = job->refused;
	if (*result == CUDA_SUCCESS && !job->empty)
		*result = peer_way_open(&pipe->device, &job->plan, &job->box, job->context, !job->transfer, &s.way);
	if (*result == CUDA_SUCCESS && !job->empty) {
		s.bytes = rc_box_bytes(&job->box);
		error = send_parts(pipe, job->transfer, &s, result);
		CUresult finished = peer_way_finish(&s.way);
		if (*result == CUDA_SUCCESS)
			*result = finished;
	}
	if (error || (*result == CUDA_SUCCESS && !job->empty))
		return error;
	struct rc_wire_peer_frame frame = { job->transfer, s.bytes, s.sent, 0, (int32_t)*result };
	return put_all(pipe, &frame, sizeof frame, NULL, 0);
}

/* ---- the target ---- */

struct receiving {
	struct peer_way way;
	uint64_t bytes, got;
	unsigned next; /* buffer */
	CUresult result; /* the first failure; after it, bytes are received and dropped */
};

static int drop(struct peer_pipe *pipe, uint64_t len)
{
	if (!pipe->drain && !(pipe->drain = malloc(RC_CHUNK_MAX)))
		return -ENOMEM;
	for (int error; len;) {
		uint64_t part = len < RC_CHUNK_MAX ? len : RC_CHUNK_MAX;
		if ((error = get_all(pipe, pipe->drain, part)))
			return error;
		len -= part;
	}
	return 0;
}

/* Receives the next bytes, at most len, into a buffer, and starts their copy to the device. */
static int receive_part(struct peer_pipe *pipe, struct receiving *r, uint64_t len, uint64_t *done)
{
	struct peer_way *way = &r->way;
	uint64_t part = rc_box_part(&way->box, r->got, way->chunk < len ? way->chunk : len);
	r->result = peer_way_wait(way, r->next);
	*done = 0;
	if (r->result != CUDA_SUCCESS)
		return 0;
	int error = get_all(pipe, way->memory + r->next * way->chunk, part);
	if (error)
		return error;
	r->result = peer_way_copy(way, r->next, r->got, part, true);
	r->next = (r->next + 1) % way->buffers;
	*done = part;
	return 0;
}

static int receive_bytes(struct peer_pipe *pipe, struct receiving *r, uint64_t len)
{
	while (len) {
		uint64_t done = len;
		int error;
		if (r->result != CUDA_SUCCESS)
			error = drop(pipe, len);
		else if (r->way.way == RC_PEER_BY_NONE)
			error = get_all(pipe, (void *)(uintptr_t)(r->way.box.device + r->got), len);
		else
			error = receive_part(pipe, r, len, &done);
		if (error)
			return error;
		r->got += done;
		len -= done;
	}
	return 0;
}

static CUresult result_of(const struct rc_wire_peer_frame *frame, const struct receiving *r)
{
	if (!frame->total && !frame->result) /* it has no bytes */
		return r->bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	return frame->result > 0 ? (CUresult)frame->result : CUDA_ERROR_UNKNOWN;
}

/* Receives frames until the transfer's end. */
static int receive_frames(struct peer_pipe *pipe, uint64_t transfer, const struct rc_wire_peer_frame *first,
			  struct receiving *r)
{
	struct rc_wire_peer_frame frame;
	uint64_t total = 0;
	do {
		int error = first ? 0 : get_all(pipe, &frame, sizeof frame);
		if (error)
			return error;
		if (first)
			frame = *first;
		first = NULL;
		if (!r->got)
			total = frame.total;
		if (frame.transfer != transfer || frame.total != total || frame.offset != r->got ||
		    frame.bytes > total - r->got)
			return -EPROTO;
		if (!frame.bytes) {
			if (r->result == CUDA_SUCCESS)
				r->result = result_of(&frame, r);
			return 0;
		}
		if (r->result == CUDA_SUCCESS && total != r->bytes)
			r->result = CUDA_ERROR_INVALID_VALUE; /* the client has named other bytes to the source */
		error = receive_bytes(pipe, r, frame.bytes);
		if (error)
			return error;
	} while (r->got < total);
	return 0;
}

int peer_transfer_receive(struct peer_pipe *pipe, const struct peer_job *job, const struct rc_wire_peer_frame *first,
			  CUresult *result)
{
	struct receiving r = { .result = job->refused };
	bool open = false;
	if (r.result == CUDA_SUCCESS && !job->empty) {
		r.bytes = rc_box_bytes(&job->box);
		r.result = peer_way_open(&pipe->device, &job->plan, &job->box, job->context, !job->transfer, &r.way);
		open = r.result == CUDA_SUCCESS;
	}
	int error = receive_frames(pipe, job->transfer, first, &r);
	CUresult finished = open ? peer_way_finish(&r.way) : CUDA_SUCCESS;
	*result = r.result != CUDA_SUCCESS ? r.result : finished;
	return error;
}

/* ---- the target's link ---- */

void peer_note_begin(struct peer_pipe *pipe, const struct rc_wire_peer_note *note)
{
	pipe->note = *note;
	pipe->note_left = sizeof *note;
}

int peer_note_put(struct peer_pipe *pipe)
{
	size_t accepted = 1;
	while (pipe->note_left && accepted) {
		struct iovec rest = { (uint8_t *)&pipe->note + sizeof pipe->note - pipe->note_left, pipe->note_left };
		int error = hr_channel_put(pipe->connection.conn, &rest, 1, &accepted);
		if (error)
			return error;
		pipe->note_left -= accepted;
	}
	return 0;
}

int peer_note_finish(struct peer_pipe *pipe)
{
	int error = peer_note_put(pipe);
	while (!error && pipe->note_left) {
		error = wait_for(pipe, true);
		if (!error)
			error = peer_note_put(pipe);
	}
	return error;
}

int peer_frame_get(struct peer_pipe *pipe, bool *whole)
{
	*whole = false;
	for (;;) {
		struct iovec rest = { (uint8_t *)&pipe->frame + pipe->frame_got, sizeof pipe->frame - pipe->frame_got };
		size_t delivered;
		int error = hr_channel_get(pipe->connection.conn, &rest, 1, &delivered);
		if (error || !delivered)
			return error;
		pipe->frame_got += delivered;
		if (pipe->frame_got == sizeof pipe->frame) {
			pipe->frame_got = 0;
			*whole = true;
			return 0;
		}
	}
}
