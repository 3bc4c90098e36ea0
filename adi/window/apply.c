/* SPDX-License-Identifier: BSD-3-Clause */
/* Accumulates: changes elements in memory by the elements of a stream of data. */
#include "adi/window/internal.h"

#include <string.h>

#define PIECES 16
#define ELEMENT_MAX 32 /* bytes of the largest basic element in memory */

static bool is_op(const struct adi_op *op, MPI_Op handle)
{
	return op->object.constant == (uintptr_t)handle;
}

/* Bytes in the data stream of the pairs whose C structs have padding; 0: no such pair. The stream has value and index without
 * padding between and behind them. */
static size_t padded_size(enum adi_basic basic)
{
	switch (basic) {
	case ADI_BASIC_SHORT_INT: return sizeof(short) + sizeof(int);
	case ADI_BASIC_LONG_INT: return sizeof(long) + sizeof(int);
	case ADI_BASIC_DOUBLE_INT: return sizeof(double) + sizeof(int);
	case ADI_BASIC_LONG_DOUBLE_INT: return sizeof(long double) + sizeof(int);
	default: return 0;
	}
}

size_t window_basic_size(enum adi_basic basic)
{
	if (basic <= ADI_BASIC_NONE || basic >= ADI_BASICS)
		return 0;
	size_t padded = padded_size(basic);
	return padded ? padded : adi_basic_size(basic);
}

bool window_lock_free(enum adi_basic basic)
{
	return basic == ADI_BASIC_INT32 || basic == ADI_BASIC_UINT32 || basic == ADI_BASIC_INT64 || basic == ADI_BASIC_UINT64;
}

/* ---- atomic elements ---- */

static uint32_t change32(const struct adi_op *op, enum adi_basic basic, uint32_t *at, const uint32_t *in)
{
	if (is_op(op, MPI_SUM))
		return __atomic_fetch_add(at, *in, __ATOMIC_ACQ_REL);
	if (is_op(op, MPI_NO_OP))
		return __atomic_load_n(at, __ATOMIC_ACQUIRE);
	if (is_op(op, MPI_REPLACE))
		return __atomic_exchange_n(at, *in, __ATOMIC_ACQ_REL);
	uint32_t seen = __atomic_load_n(at, __ATOMIC_RELAXED), new;
	do {
		new = seen;
		adi_op_apply_basic(op, basic, in, &new, 1);
	} while (!__atomic_compare_exchange_n(at, &seen, new, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return seen;
}

static uint64_t change64(const struct adi_op *op, enum adi_basic basic, uint64_t *at, const uint64_t *in)
{
	if (is_op(op, MPI_SUM))
		return __atomic_fetch_add(at, *in, __ATOMIC_ACQ_REL);
	if (is_op(op, MPI_NO_OP))
		return __atomic_load_n(at, __ATOMIC_ACQUIRE);
	if (is_op(op, MPI_REPLACE))
		return __atomic_exchange_n(at, *in, __ATOMIC_ACQ_REL);
	uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED), new;
	do {
		new = seen;
		adi_op_apply_basic(op, basic, in, &new, 1);
	} while (!__atomic_compare_exchange_n(at, &seen, new, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return seen;
}

void window_change_atomically(const struct adi_op *op, enum adi_basic basic, char *at, const char *data, char *old, size_t bytes)
{
	if (basic == ADI_BASIC_INT32 || basic == ADI_BASIC_UINT32) {
		for (size_t i = 0; i < bytes; i += 4) {
			uint32_t was = change32(op, basic, (uint32_t *)(void *)(at + i), (const void *)(data ? data + i : NULL));
			if (old)
				memcpy(old + i, &was, 4);
		}
		return;
	}
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t was = change64(op, basic, (uint64_t *)(void *)(at + i), (const void *)(data ? data + i : NULL));
		if (old)
			memcpy(old + i, &was, 8);
	}
}

/* ---- runs and layouts ---- */

static void change_run(const struct adi_op *op, enum adi_basic basic, char *at, const char *data, char *old, size_t bytes,
		       bool atomically)
{
	if (atomically && window_lock_free(basic)) {
		window_change_atomically(op, basic, at, data, old, bytes);
		return;
	}
	if (old)
		memcpy(old, at, bytes);
	if (is_op(op, MPI_REPLACE))
		memcpy(at, data, bytes);
	else if (!is_op(op, MPI_NO_OP))
		adi_op_apply_basic(op, basic, data, at, bytes / window_basic_size(basic));
}

/* Pairs: from the stream to the C struct, and back. */
static void pair_expand(enum adi_basic basic, const char *stream, char *pair)
{
	size_t value = padded_size(basic) - sizeof(int);
	memcpy(pair, stream, value);
	memcpy(pair + (value < sizeof(int) ? sizeof(int) : value), stream + value, sizeof(int));
}

static void pair_compress(enum adi_basic basic, const char *pair, char *stream)
{
	size_t value = padded_size(basic) - sizeof(int);
	memcpy(stream, pair, value);
	memcpy(stream + value, pair + (value < sizeof(int) ? sizeof(int) : value), sizeof(int));
}

static void change_pairs(const struct adi_op *op, enum adi_basic basic, struct adi_stream *stream, const char *data, char *old,
			 size_t bytes)
{
	size_t size = padded_size(basic);
	_Alignas(16) char in[ELEMENT_MAX] = { 0 }, inout[ELEMENT_MAX] = { 0 }, was[ELEMENT_MAX];
	for (size_t i = 0; i < bytes; i += size) {
		struct adi_stream write = *stream;
		if (adi_stream_pack(stream, was, size) != size)
			return;
		if (old)
			memcpy(old + i, was, size);
		if (is_op(op, MPI_NO_OP))
			continue;
		pair_expand(basic, was, inout);
		pair_expand(basic, data + i, in);
		if (is_op(op, MPI_REPLACE))
			memcpy(inout, in, sizeof in);
		else
			adi_op_apply_basic(op, basic, in, inout, 1);
		pair_compress(basic, inout, was);
		adi_stream_unpack(&write, was, size);
	}
}

int window_fetch_apply(const struct adi_op *op, enum adi_basic basic, const struct window_place *place, uint64_t from,
		       const void *data, size_t bytes, void *old, bool atomically)
{
	if (!place->type) {
		change_run(op, basic, place->at + from, data, old, bytes, atomically);
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	int class = adi_stream_start(&stream, place->at, place->count, place->type);
	if (class)
		return class;
	adi_stream_seek(&stream, from);
	if (padded_size(basic)) {
		change_pairs(op, basic, &stream, data, old, bytes);
		return MPI_SUCCESS;
	}
	for (size_t done = 0; done < bytes;) {
		struct iovec piece[PIECES];
		size_t some = 0;
		int n = adi_stream_pieces(&stream, piece, PIECES, bytes - done, &some);
		if (n <= 0)
			break;
		for (int i = 0; i < n; done += piece[i].iov_len, i++)
			change_run(op, basic, piece[i].iov_base, data ? (const char *)data + done : NULL,
				   old ? (char *)old + done : NULL, piece[i].iov_len, atomically);
	}
	return MPI_SUCCESS;
}

int window_apply(const struct adi_op *op, enum adi_basic basic, const struct window_place *place, uint64_t from, const void *data,
		 size_t bytes, bool atomically)
{
	return window_fetch_apply(op, basic, place, from, data, bytes, NULL, atomically);
}

void window_swap(enum adi_basic basic, void *at, const void *new, const void *compare, void *old, bool atomically)
{
	size_t size = window_basic_size(basic);
	if (atomically && window_lock_free(basic) && size == 4) {
		uint32_t seen, value;
		memcpy(&seen, compare, 4);
		memcpy(&value, new, 4);
		__atomic_compare_exchange_n((uint32_t *)at, &seen, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		memcpy(old, &seen, 4);
		return;
	}
	if (atomically && window_lock_free(basic)) {
		uint64_t seen, value;
		memcpy(&seen, compare, 8);
		memcpy(&value, new, 8);
		__atomic_compare_exchange_n((uint64_t *)at, &seen, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		memcpy(old, &seen, 8);
		return;
	}
	bool same = memcmp(at, compare, size) == 0;
	memcpy(old, at, size);
	if (same)
		memcpy(at, new, size);
}
