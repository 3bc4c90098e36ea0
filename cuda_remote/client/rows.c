/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the bytes of a copy lie on the host, which sees them as slices of rows; the copy counts them without gaps. */
#include "cuda_remote/client/copy.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/copy_rows.h"
#include "rdma_channel/base/stream_copy.h"

/* If a copy to the host has at least this many bytes, and its rows are long, it is written past the cache: the bytes would
 * not stay there until the program reads them. */
#define STREAM_BYTES (1u << 20)
#define STREAM_ROW 4096

/* A place in a copy. */
struct place {
	const struct rc_copy *copy;
	uint64_t x, y;  /* in the row, in the slice */
	uint8_t *row;   /* first byte of the row */
	uint8_t *slice; /* and of the slice */
};

uint64_t rc_copy_bytes(const struct rc_copy *copy)
{
	return copy->width * copy->height * copy->depth;
}

/* The place of the byte at offset, which is inside the copy. */
static struct place place_of(const struct rc_copy *copy, uint64_t offset)
{
	struct place place = { .copy = copy };
	uint64_t row = offset / copy->width;
	place.x = offset - row * copy->width;
	place.y = row % copy->height;
	place.slice = copy->host + row / copy->height * copy->slice;
	place.row = place.slice + place.y * copy->pitch;
	return place;
}

/* The bytes from the place to the end of its row, at most len; moves the place behind them. The row that follows the last
 * may be no memory of the program, and is not used. */
static struct iovec take(struct place *place, uint64_t len)
{
	const struct rc_copy *copy = place->copy;
	uint64_t left = copy->width - place->x;
	struct iovec piece = { place->row + place->x, left < len ? left : len };
	place->x += piece.iov_len;
	if (piece.iov_len == len)
		return piece;
	place->x = 0;
	if (++place->y < copy->height) {
		place->row += copy->pitch;
	} else {
		place->y = 0;
		place->slice += copy->slice;
		place->row = place->slice;
	}
	return piece;
}

int rc_copy_pieces(const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov, int max)
{
	uint64_t bytes = rc_copy_bytes(copy);
	if (offset > bytes || len > bytes - offset)
		return -1;
	if (!len)
		return 0;
	struct place place = place_of(copy, offset);
	int n = 0;
	while (len) {
		if (n == max)
			return 0;
		iov[n] = take(&place, len);
		len -= iov[n++].iov_len;
	}
	return n;
}

/* Copies n rows of width bytes. */
static void move_rows(uint8_t *to, uint64_t to_pitch, const uint8_t *from, uint64_t from_pitch, uint64_t width, uint64_t n)
{
	if (hr_copy_close_rows(to, to_pitch, from, from_pitch, width, n) ||
	    hr_copy_short_rows(to, to_pitch, from, from_pitch, width, n))
		return;
	for (uint64_t i = 0; i < n; i++, to += to_pitch, from += from_pitch)
		hr_copy(to, from, width);
}

/* The number of whole rows of the slice that begin at the place, of at most len bytes. Moves the place behind them. */
static uint64_t take_rows(struct place *place, uint64_t len)
{
	const struct rc_copy *copy = place->copy;
	uint64_t left = copy->height - place->y, n = len / copy->width;
	if (place->x)
		return 0;
	if (n < left) {
		place->y += n;
		place->row += n * copy->pitch;
		return n;
	}
	if (left * copy->width < len) { /* else the place is not used any more */
		place->y = 0;
		place->slice += copy->slice;
		place->row = place->slice;
	}
	return left;
}

/* Copies the bytes offset..offset+len-1 of a copy from contiguous memory to their places (scatter), or back. */
static void move_short(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes, bool scatter)
{
	uint64_t width = copy->width, pitch = copy->pitch;
	for (struct place place = place_of(copy, offset); len;) {
		uint8_t *row = place.row;
		uint64_t n = take_rows(&place, len), count = n * width;
		if (n && scatter) {
			move_rows(row, pitch, bytes, width, width, n);
		} else if (n) {
			move_rows(bytes, width, row, pitch, width, n);
		} else {
			struct iovec piece = take(&place, len);
			hr_copy(scatter ? piece.iov_base : bytes, scatter ? bytes : piece.iov_base, piece.iov_len);
			count = piece.iov_len;
		}
		bytes += count;
		len -= count;
	}
}

/* The same, past the cache. */
static void move_streaming(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes, bool scatter)
{
	for (struct place place = place_of(copy, offset); len;) {
		struct iovec piece = take(&place, len);
		hr_copy_streaming(scatter ? piece.iov_base : bytes, scatter ? bytes : piece.iov_base, piece.iov_len);
		bytes += piece.iov_len;
		len -= piece.iov_len;
	}
	hr_copy_streamed();
}

void rc_copy_scatter(const struct rc_copy *copy, uint64_t offset, uint64_t len, const uint8_t *bytes)
{
	if (rc_copy_bytes(copy) >= STREAM_BYTES && copy->width >= STREAM_ROW)
		move_streaming(copy, offset, len, (uint8_t *)(uintptr_t)bytes, true);
	else
		move_short(copy, offset, len, (uint8_t *)(uintptr_t)bytes, true);
}

void rc_copy_gather(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes)
{
	move_short(copy, offset, len, bytes, false);
}

bool rc_copy_has_long_rows(const struct rc_copy *copy)
{
	return copy->width >= STREAM_ROW;
}

void rc_copy_gather_streaming(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes)
{
	move_streaming(copy, offset, len, bytes, false);
}
