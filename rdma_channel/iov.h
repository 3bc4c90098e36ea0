/* SPDX-License-Identifier: BSD-3-Clause */
/* A position in a vector of buffers (struct iovec), for transports. */
#ifndef HR_IOV_H
#define HR_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct hr_iov_place {
	const struct iovec *iov;
	int n;         /* number of elements left, iov[0] included */
	size_t offset; /* into iov[0] */
};

static inline size_t hr_iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

static inline struct hr_iov_place hr_iov_begin(const struct iovec *iov, int n)
{
	return (struct hr_iov_place){ iov, n, 0 };
}

/* Returns the number of contiguous bytes at the position, and their address in *bytes; 0 and NULL at the end. Skips
 * empty elements. */
static inline size_t hr_iov_piece(struct hr_iov_place *place, uint8_t **bytes)
{
	while (place->n > 0 && place->offset == place->iov->iov_len) {
		place->iov++;
		place->n--;
		place->offset = 0;
	}
	*bytes = NULL;
	if (place->n <= 0)
		return 0;
	*bytes = (uint8_t *)place->iov->iov_base + place->offset;
	return place->iov->iov_len - place->offset;
}

/* Moves the position on by count bytes. */
static inline void hr_iov_advance(struct hr_iov_place *place, size_t count)
{
	while (count > 0) {
		size_t left = place->iov->iov_len - place->offset;
		if (count < left) {
			place->offset += count;
			return;
		}
		count -= left;
		place->iov++;
		place->n--;
		place->offset = 0;
	}
}

/* Returns the number of bytes from the position on that are contiguous in memory, over all elements. */
static inline size_t hr_iov_run(struct hr_iov_place place)
{
	uint8_t *start, *next;
	size_t run = hr_iov_piece(&place, &start), piece = run;
	while (piece > 0) {
		hr_iov_advance(&place, piece);
		piece = hr_iov_piece(&place, &next);
		if (next != start + run)
			break;
		run += piece;
	}
	return run;
}

#endif
