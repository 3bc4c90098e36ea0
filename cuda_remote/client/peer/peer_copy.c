/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between servers by way of this process: with HEADRACE_PEER=client, if there is no link, and if an end is an array. For
 * each server that is a target, a thread of this library copies piece by piece into a buffer and from there to the target. It
 * calls the driver API like a thread of the program, in streams of its own, which wait for nothing but these copies. If
 * the stream of a copy belongs to another server than the memory, this thread makes the copy too, and uses no buffer.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/stream_priority.h"

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
	int least, greatest;
	CUresult result = cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS)
		result = cuCtxGetStreamPriorityRange(&least, &greatest);
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
	result = cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, rc_stream_own_priority(least, greatest));
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

/* What one end of a piece is to cuMemcpy3D, from slice z of the piece on. */
static void end_set(CUDA_MEMCPY3D *copy, const struct rc_peer_side *side, const struct piece *piece, uint64_t z, bool source)
{
	const struct rc_wire_box *box = &side->box;
	uint64_t pitch = box->height > 1 ? box->pitch : box->width, slice = box->depth > 1 ? box->slice : pitch * box->height;
	uint64_t at = box->device + (piece->z + z) * slice + piece->y * pitch + piece->x;
	CUmemorytype type = side->array ? CU_MEMORYTYPE_ARRAY : side->session ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	if (side->array) {
		*(source ? &copy->srcXInBytes : &copy->dstXInBytes) = side->x + piece->x;
		*(source ? &copy->srcY : &copy->dstY) = side->y + piece->y;
		*(source ? &copy->srcZ : &copy->dstZ) = side->z + piece->z + z;
		*(source ? &copy->srcArray : &copy->dstArray) = side->array;
	} else {
		*(source ? &copy->srcDevice : &copy->dstDevice) = at;
		*(source ? &copy->srcPitch : &copy->dstPitch) = pitch;
		*(source ? &copy->srcHeight : &copy->dstHeight) = slice / pitch;
	}
	if (source) {
		copy->srcMemoryType = type;
		copy->srcHost = (const void *)(uintptr_t)at;
	} else {
		copy->dstMemoryType = type;
		copy->dstHost = (void *)(uintptr_t)at;
	}
}

/* True if one call can copy several slices: a slice of linear memory may be no multiple of the pitch. */
static bool slices_fit(const struct rc_peer_side *side, const struct piece *piece)
{
	const struct rc_wire_box *box = &side->box;
	uint64_t pitch = box->height > 1 ? box->pitch : box->width;
	return side->array || box->depth == 1 || (box->slice % pitch == 0 && box->slice / pitch >= piece->height);
}

/* Copies from a piece of one end to a piece of the other, of the same size. */
static CUresult copy_ends(const struct rc_peer_side *to, const struct piece *into, const struct rc_peer_side *from,
			  const struct piece *out_of, CUstream stream)
{
	uint64_t step = slices_fit(to, into) && slices_fit(from, out_of) ? into->depth : 1;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < into->depth && result == CUDA_SUCCESS; z += step) {
		CUDA_MEMCPY3D copy = { .WidthInBytes = into->width, .Height = into->height, .Depth = step };
		end_set(&copy, to, into, z, false);
		end_set(&copy, from, out_of, z, true);
		result = cuMemcpy3DAsync_v2(&copy, stream);
	}
	return result;
}

/* ---- copies ---- */

static CUresult copy_piece(struct mover *mover, const struct rc_peer_op *op, const struct piece *piece)
{
	CUstream stream;
	struct piece whole = { 0, 0, 0, piece->width, piece->height, piece->depth };
	struct rc_peer_side buffer = { .box = { (uint64_t)(uintptr_t)mover->buffer, piece->width,
						piece->width * piece->height, piece->width, piece->height, piece->depth } };
	/* To memory that is not pinned: the call returns when the bytes are there. */
	CUresult result = enter(mover, op->from.context, &stream);
	if (result == CUDA_SUCCESS)
		result = copy_ends(&buffer, &whole, &op->from, piece, stream);
	if (result == CUDA_SUCCESS)
		result = enter(mover, op->to.context, &stream);
	return result == CUDA_SUCCESS ? copy_ends(&op->to, piece, &buffer, &whole, stream) : result;
}

static CUresult copy_pieces(struct mover *mover, const struct rc_peer_op *op)
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
	return result;
}

/* Between memory of one server and pinned memory of this process, or within a server. */
static CUresult copy_at_once(struct mover *mover, const struct rc_peer_op *op)
{
	const struct rc_wire_box *box = &op->to.box;
	struct piece whole = { 0, 0, 0, box->width, box->height, box->depth };
	CUstream stream;
	CUresult result = enter(mover, op->to.session ? op->to.context : op->from.context, &stream);
	return result == CUDA_SUCCESS ? copy_ends(&op->to, &whole, &op->from, &whole, stream) : result;
}

static CUresult copy_all(struct mover *mover, const struct rc_peer_op *op)
{
	CUstream stream;
	bool apart = op->to.session && op->from.session && op->to.session != op->from.session;
	CUresult result = apart ? copy_pieces(mover, op) : copy_at_once(mover, op);
	if (result == CUDA_SUCCESS)
		result = enter(mover, op->to.session ? op->to.context : op->from.context, &stream);
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
	struct mover *mover = &movers[(op->to.session ? op->to.session : op->from.session)->index];
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
