/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between servers by way of this process: with HEADRACE_PEER=client, or if there is no link. For each server that is
 * a target, a thread of this library copies piece by piece into a buffer and from there to the target. It calls the driver API like a thread of the
 * program, in streams of its own, which wait for nothing but these copies.
 */
#include "cuda_remote/client/peer/peer.h"

#include <pthread.h>
#include <stdlib.h>

#define PIECE (4ull << 20)
#define STREAMS 16

/* A thread that copies, for one target. */
struct mover {
	bool running;
	struct rc_peer_op *first, **end; /* queue */
	uint8_t *buffer;
	struct {
		CUcontext context;
		CUstream stream;
	} kept[STREAMS];
	unsigned oldest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static struct mover movers[RC_SERVER_MAX];

/* Makes the context current, with a stream of this thread in it. A reset or the end of a context ends its streams. */
static CUresult enter(struct mover *mover, CUcontext context, CUstream *stream)
{
	unsigned i = 0;
	CUresult result = cuCtxSetCurrent(context);
	if (result != CUDA_SUCCESS)
		return result;
	while (i < STREAMS && mover->kept[i].context != context)
		i++;
	if (i < STREAMS && rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)mover->kept[i].stream) == CUDA_SUCCESS) {
		*stream = mover->kept[i].stream;
		return CUDA_SUCCESS;
	}
	if (i == STREAMS) {
		i = mover->oldest++ % STREAMS;
		if (mover->kept[i].context)
			cuStreamDestroy_v2(mover->kept[i].stream);
	}
	mover->kept[i].context = NULL;
	result = cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS)
		return result;
	mover->kept[i].context = context;
	mover->kept[i].stream = *stream;
	return CUDA_SUCCESS;
}

/* ---- pieces: part of one row, rows of one slice, or slices ---- */

struct piece {
	uint64_t x, y, z, width, height, depth;
};

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The piece that begins at x, y, z, where the last one ended. */
static void piece_size(const struct rc_wire_box *box, struct piece *piece)
{
	uint64_t slice = box->width * box->height;
	piece->height = piece->depth = 1;
	piece->width = lesser(box->width - piece->x, PIECE);
	if (piece->x || piece->width < box->width)
		return;
	piece->height = lesser(box->height - piece->y, PIECE / box->width);
	if (piece->y || piece->height < box->height)
		return;
	piece->depth = lesser(box->depth - piece->z, PIECE / slice);
}

static void piece_next(const struct rc_wire_box *box, struct piece *piece)
{
	piece->x += piece->width;
	if (piece->x < box->width)
		return;
	piece->x = 0;
	piece->y += piece->height;
	if (piece->y < box->height)
		return;
	piece->y = 0;
	piece->z += piece->depth;
}

/* A part of a box as cuMemcpy3D sees it: an offset into rows of pitch bytes. A slice may be no multiple of the pitch, so
 * several slices are copied by one call only if it is. */
static CUresult copy_part(const struct rc_wire_box *box, const struct piece *piece, uint8_t *buffer, bool out, CUstream stream)
{
	uint64_t pitch = box->height > 1 ? box->pitch : box->width, slice = box->depth > 1 ? box->slice : pitch * box->height;
	uint64_t step = piece->depth == 1 || (slice % pitch == 0 && slice / pitch >= piece->height) ? piece->depth : 1;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < piece->depth && result == CUDA_SUCCESS; z += step) {
		CUdeviceptr device = box->device + (piece->z + z) * slice + piece->y * pitch + piece->x;
		uint8_t *host = buffer + z * piece->width * piece->height;
		CUDA_MEMCPY3D copy = {
			.srcMemoryType = out ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST, .srcDevice = device, .srcHost = host,
			.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstHost = host,
			.srcPitch = out ? pitch : piece->width, .srcHeight = out ? slice / pitch : piece->height,
			.dstPitch = out ? piece->width : pitch, .dstHeight = out ? piece->height : slice / pitch,
			.WidthInBytes = piece->width, .Height = piece->height, .Depth = step,
		};
		result = cuMemcpy3DAsync_v2(&copy, stream);
	}
	return result;
}

/* ---- copies ---- */

static CUresult copy_piece(struct mover *mover, const struct rc_peer_op *op, const struct piece *piece)
{
	CUstream stream;
	/* To memory that is not pinned: the call returns when the bytes are there. */
	CUresult result = enter(mover, op->from.context, &stream);
	if (result == CUDA_SUCCESS)
		result = copy_part(&op->from.box, piece, mover->buffer, true, stream);
	if (result == CUDA_SUCCESS)
		result = enter(mover, op->to.context, &stream);
	return result == CUDA_SUCCESS ? copy_part(&op->to.box, piece, mover->buffer, false, stream) : result;
}

static CUresult copy_all(struct mover *mover, const struct rc_peer_op *op)
{
	const struct rc_wire_box *box = &op->to.box;
	struct piece piece = { 0 };
	CUresult result = CUDA_SUCCESS;
	if (!mover->buffer && !(mover->buffer = malloc(PIECE)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (result == CUDA_SUCCESS && piece.z < box->depth) {
		piece_size(box, &piece);
		result = copy_piece(mover, op, &piece);
		piece_next(box, &piece);
	}
	CUstream stream;
	if (result == CUDA_SUCCESS)
		result = enter(mover, op->to.context, &stream);
	return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

static struct rc_peer_op *next_op(struct mover *mover)
{
	pthread_mutex_lock(&lock);
	while (!mover->first)
		pthread_cond_wait(&queued, &lock);
	struct rc_peer_op *op = mover->first;
	mover->first = op->behind;
	if (!mover->first)
		mover->end = &mover->first;
	pthread_mutex_unlock(&lock);
	return op;
}

static void *move(void *argument)
{
	struct mover *mover = argument;
	struct rc_thread *thread = rc_thread_get();
	if (thread)
		thread->own = true;
	for (;;) {
		struct rc_peer_op *op = next_op(mover);
		rc_peer_end(op, thread ? copy_all(mover, op) : CUDA_ERROR_OUT_OF_MEMORY);
	}
	return NULL;
}

CUresult rc_peer_move_here(struct rc_peer_op *op)
{
	struct mover *mover = &movers[op->to.session->index];
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (!mover->running) {
		mover->end = &mover->first;
		result = rc_peer_thread(move, mover);
		mover->running = result == CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS) {
		op->behind = NULL;
		*mover->end = op;
		mover->end = &op->behind;
		pthread_cond_broadcast(&queued);
	}
	pthread_mutex_unlock(&lock);
	return result;
}
