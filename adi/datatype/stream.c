/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of a buffer as a stream of bytes: see type.h. */
#include "adi/datatype/build.h"

#include <string.h>

MPI_Count adi_type_span(const struct adi_type *type, MPI_Count count, MPI_Count *first)
{
	MPI_Count last, low, bytes;
	if (__builtin_mul_overflow(count - 1, type->extent, &last) ||
	    __builtin_add_overflow(type->true_lb, last < 0 ? last : 0, &low) ||
	    __builtin_sub_overflow(type->true_extent, last < 0 ? last : 0, &bytes) ||
	    __builtin_add_overflow(bytes, last > 0 ? last : 0, &bytes)) {
		*first = 0;
		return INT64_MAX;
	}
	*first = low;
	return bytes;
}

int adi_stream_start(struct adi_stream *stream, const void *buf, MPI_Count count, struct adi_type *type)
{
	MPI_Count bytes;
	*stream = (struct adi_stream){ .buf = (char *)(uintptr_t)buf, .count = count, .type = type };
	if (__builtin_expect(__builtin_mul_overflow(count, type->size, &bytes), 0))
		return adi_error(MPI_ERR_COUNT, "count is %lld; valid: as many elements of %lld bytes as fit MPI_Count",
				 (long long)count, (long long)type->size);
	stream->bytes = (size_t)bytes;
	return type->contiguous ? MPI_SUCCESS : adi_layout_compile(type);
}

void adi_stream_seek(struct adi_stream *stream, size_t at)
{
	stream->at = at < stream->bytes ? at : stream->bytes;
}

/* The layout of all elements, and the address of the first byte of data. It borrows its children. */
static char *whole_layout(const struct adi_stream *stream, struct adi_layout *whole)
{
	const struct adi_layout *one = stream->type->layout;
	MPI_Count extent = stream->type->extent;
	if (stream->count == 1) {
		*whole = *one;
	} else {
		*whole = (struct adi_layout){ .bytes = stream->bytes, .count = (size_t)stream->count, .stride = extent,
					      .block = one->bytes };
		if (!adi_layout_is_run(one))
			whole->child = (struct adi_layout *)(uintptr_t)one;
	}
	return (char *)((uintptr_t)stream->buf + (uintptr_t)one->first);
}

static size_t copy(bool unpack, struct adi_stream *stream, char *data, size_t max)
{
	size_t len = stream->bytes - stream->at < max ? stream->bytes - stream->at : max;
	if (!len)
		return 0;
	if (stream->type->contiguous) {
		char *at = (char *)((uintptr_t)stream->buf + (uintptr_t)stream->type->true_lb + stream->at);
		memcpy(unpack ? at : data, unpack ? data : at, len);
	} else {
		struct adi_layout whole;
		char *memory = whole_layout(stream, &whole);
		adi_layout_copy(unpack, &whole, memory, stream->at, len, data);
	}
	stream->at += len;
	return len;
}

size_t adi_stream_pack(struct adi_stream *stream, void *to, size_t max)
{
	return copy(false, stream, to, max);
}

size_t adi_stream_unpack(struct adi_stream *stream, const void *from, size_t max)
{
	return copy(true, stream, (char *)(uintptr_t)from, max);
}

/* Pieces as they are found. */
struct pieces {
	struct iovec *piece;
	int n, max;
	size_t left; /* bytes that may still be described */
};

/* Adds a run. Returns false if no more fits. */
static bool add(struct pieces *pieces, char *at, size_t len)
{
	struct iovec *last = pieces->piece + pieces->n - 1;
	if (len > pieces->left)
		len = pieces->left;
	if (pieces->n && (char *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
	} else {
		if (pieces->n == pieces->max)
			return false;
		pieces->piece[pieces->n++] = (struct iovec){ at, len };
	}
	pieces->left -= len;
	return pieces->left > 0;
}

/* Adds the runs of a layout from byte `skip` on. Returns false if no more fits. */
static bool add_layout(struct pieces *pieces, const struct adi_layout *layout, char *memory, size_t skip)
{
	size_t i = 0, begin = 0;
	if (skip)
		i = adi_layout_child(layout, skip, &begin);
	for (skip -= begin; i < layout->count; i++, skip = 0) {
		const struct adi_layout *child = layout->children ? layout->children[i] : layout->child;
		size_t bytes = layout->start ? layout->start[i + 1] - layout->start[i] : layout->block;
		char *at = memory + (layout->offset ? layout->offset[i] : (MPI_Count)i * layout->stride);
		if (!(child ? add_layout(pieces, child, at, skip) : add(pieces, at + skip, bytes - skip)))
			return false;
	}
	return true;
}

int adi_stream_pieces(struct adi_stream *stream, struct iovec *piece, int n, size_t max, size_t *bytes)
{
	size_t len = stream->bytes - stream->at < max ? stream->bytes - stream->at : max;
	struct pieces pieces = { piece, 0, n, len };
	if (len && n > 0 && stream->type->contiguous) {
		add(&pieces, (char *)((uintptr_t)stream->buf + (uintptr_t)stream->type->true_lb + stream->at), len);
	} else if (len && n > 0) {
		struct adi_layout whole;
		char *memory = whole_layout(stream, &whole);
		add_layout(&pieces, &whole, memory, stream->at);
	}
	*bytes = len - pieces.left;
	stream->at += *bytes;
	return pieces.n;
}

/* Pieces of this mean size are copied one by one; smaller ones pass through a buffer, in which they are packed at once. */
#define LARGE_PIECE 1024
#define BUFFER 8192

/* Copies the rest of from, which is not longer than to. */
static void copy_streams(struct adi_stream *from, struct adi_stream *to)
{
	char buffer[BUFFER];
	struct iovec piece[16];
	size_t bytes;
	while (from->at < from->bytes) {
		size_t at = to->at, rest = from->bytes - from->at;
		int n = adi_stream_pieces(to, piece, 16, rest, &bytes);
		if (bytes >= (size_t)n * LARGE_PIECE) {
			for (int i = 0; i < n; i++)
				adi_stream_pack(from, piece[i].iov_base, piece[i].iov_len);
			continue;
		}
		adi_stream_seek(to, at);
		for (size_t done = 0; done < 16 * sizeof buffer && from->at < from->bytes; done += bytes) {
			bytes = adi_stream_pack(from, buffer, sizeof buffer);
			adi_stream_unpack(to, buffer, bytes);
		}
	}
}

int adi_type_copy(const void *from, MPI_Count from_count, struct adi_type *from_type, void *to, MPI_Count to_count,
		  struct adi_type *to_type)
{
	struct adi_stream source, target;
	int class = adi_stream_start(&source, from, from_count, from_type);
	if (!class)
		class = adi_stream_start(&target, to, to_count, to_type);
	if (class)
		return class;
	if (source.bytes > target.bytes)
		return adi_error(MPI_ERR_TRUNCATE, "the data are %zu bytes; the receive buffer has %zu", source.bytes,
				 target.bytes);
	if (!source.bytes)
		return MPI_SUCCESS;
	if (to_type->contiguous)
		adi_stream_pack(&source, (char *)((uintptr_t)to + (uintptr_t)to_type->true_lb), source.bytes);
	else if (from_type->contiguous)
		adi_stream_unpack(&target, (char *)((uintptr_t)from + (uintptr_t)from_type->true_lb), source.bytes);
	else
		copy_streams(&source, &target);
	return MPI_SUCCESS;
}
