/* SPDX-License-Identifier: BSD-3-Clause */
/* The data connection, inside: what connection.c calls for each kind of copy. All on the thread of the connection. */
#ifndef RC_CUDA_SERVER_DATA_H
#define RC_CUDA_SERVER_DATA_H

#include "cuda_remote/server/internal.h"

/* A stream has come to a copy to the host, or the device has copied windows of it: sends them. After the last one, the copy is
 * freed. */
void server_push_serve(struct server_thread *thread, struct server_parcel *parcel);
/* A stream has come to a copy whose bytes the client is to send: takes the parcel over. */
void server_fetch_begin(struct server_thread *thread, struct server_parcel *parcel);
/* The stream has passed such a copy. */
void server_fetch_advance(struct server_thread *thread, struct server_parcel *parcel);
/* Looks at what the device has written. True: it has not done what the transfer waits for. */
bool server_fetch_look(struct server_thread *thread);
bool server_push_look(void);
/* A chunk of such a copy arrives; without bytes: the client refuses a window. */
int server_fetch_arrived(struct server_thread *thread, const struct rc_wire_chunk *chunk, uint64_t len, ch3_sink_t *sink);

/* ---- sends.c ---- */

/* Waits until the oldest chunk is sent, or the connection has failed. False: no chunk is being sent. */
bool server_sends_end_one(struct server_thread *thread);
/* The number of chunks begun so far; waits until the first n of them are sent. */
uint64_t server_sends_begun(void);
void server_sends_wait(struct server_thread *thread, uint64_t n);

/* ---- lane.c ---- */

/* Pinned memory of two windows. Window n of a copy takes half n % 2. */
struct server_lane;

/* On a thread that makes a call, of this connection: the lane of the stream (the client's handle) in the current context. Each copy of a stream takes
 * it, and puts it back when the device and the data connection no longer use it for this copy. */
CUresult server_lane_take(const struct server_thread *thread, uint64_t stream, struct server_lane **lane);
void server_lane_put(struct server_lane *lane);
/* The newest copy to the host that uses the lane; of push.c. */
void **server_lane_newest(struct server_lane *lane);
/* The end of the window that begins at an offset of a copy of this many bytes. */
uint64_t server_lane_end(const struct server_lane *lane, const struct rc_wire_box *box, uint64_t bytes, uint64_t begin);
/* The number of windows of a copy. 0: its rows overlap, or they are too many. */
uint64_t server_lane_windows(const struct server_lane *lane, const struct rc_wire_box *box, uint64_t bytes);
/* Where the window lies. Its bytes are contiguous. */
uint8_t *server_lane_memory(const struct server_lane *lane, uint64_t window);
/* The gates of a copy: the stream waits for the steps of the one before the windows, and writes those of the other after them. */
struct server_lane_gates {
	struct server_gate_place gate, done;
};
/* What a copy reads or writes beside the host's memory. */
struct server_lane_side {
	const struct rc_wire_box *box;
	const CUDA_MEMCPY3D *array; /* NULL: the box is memory of the device */
};
/* Issues the device's part of a copy, all windows. up: to the device. */
CUresult server_lane_issue(const struct server_lane *lane, const struct server_lane_side *device, uint64_t bytes,
			   const struct server_lane_gates *gates, bool up, CUstream stream);

#endif
