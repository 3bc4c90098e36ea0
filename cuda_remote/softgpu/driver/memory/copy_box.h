/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a copy, which arrays and copies share: a box of bytes and its two sides. */
#ifndef SOFTGPU_COPY_BOX_H
#define SOFTGPU_COPY_BOX_H

#include <stddef.h>
#include <stdint.h>

/* What kind of memory the caller names; copies check that the address is of this kind. */
enum copy_side_kind {
	COPY_HOST,    /* host memory; device memory is refused */
	COPY_DEVICE,  /* memory that a kernel can reach */
	COPY_UNIFIED, /* either kind: the address decides */
};

typedef struct copy_side {
	enum copy_side_kind kind;
	uint64_t address; /* of the first byte */
	size_t pitch;     /* from row to row, bytes */
	size_t slice;     /* from slice to slice, bytes */
} copy_side_t;

/* When a source in host memory is read. */
enum copy_source {
	COPY_SOURCE_API,    /* as the API's synchronization rules say: pageable memory before the call returns, else in the stream */
	COPY_SOURCE_STREAM, /* when the stream reaches the copy, pageable or not */
	COPY_SOURCE_NOW,    /* before the call returns, even if the stream is busy */
};

typedef struct copy_box {
	copy_side_t to, from;
	size_t width, height, depth; /* bytes, rows, slices */
	enum copy_source source;
} copy_box_t;

#endif
