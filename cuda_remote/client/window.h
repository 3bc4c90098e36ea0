/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of one device: a window of the process's own address space, in which nothing else is mapped. */
#ifndef RC_CUDA_WINDOW_H
#define RC_CUDA_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_window_block;

/* An allocation of more than small bytes gets whole pages, a smaller one granules of one page. */
struct rc_window {
	uint64_t base, bytes;
	uint64_t granule, small, page;
	uint64_t unit;                    /* in what used is counted: granule or page */
	uint64_t used;                    /* bytes of the granules, or of the pages, that are in use */
	size_t pages;
	size_t first_free;                /* no page before this one is free */
	uint64_t *taken;                  /* a bit for each page */
	struct rc_window_block **block;   /* for each page: what is known of its granules; NULL: it is not divided */
	struct rc_window_block *roomy;    /* list of the blocks with free granules */
	struct rc_window_block *spare;
};

/* Reserves bytes of addresses, where the kernel or chance puts them. shared: for memory of the host that workers map too.
 * attempt: which place is tried. 0: no such addresses. */
uint64_t rc_window_reserve(uint64_t bytes, bool shared, unsigned attempt);
/* Reserves these addresses. False: part of them is in use. */
bool rc_window_reserve_at(uint64_t base, uint64_t bytes);
void rc_window_release(uint64_t base, uint64_t bytes);

/* The fields from base to unit are set. -ENOMEM; -EINVAL: they do not fit together. */
int rc_window_open(struct rc_window *window);
/* Frees what rc_window_open and rc_window_take have allocated; the addresses stay reserved. Nothing is in use. */
void rc_window_close(struct rc_window *window);
/* Finds addresses for bytes > 0, a multiple of the granule. 0: there are none. */
uint64_t rc_window_take(struct rc_window *window, uint64_t bytes);
/* Ends the use of what rc_window_take returned. */
void rc_window_give(struct rc_window *window, uint64_t address, uint64_t bytes);

#endif
