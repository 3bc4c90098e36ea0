/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrors: memory that a client and a worker on another host each have a copy of, at the same address. Beside its copy each
 * side keeps a twin: the bytes that both copies had when they were last equal. What differs from the twin has been changed
 * by this side. Changed bytes travel in records, and both twins take them over, so that the two twins stay equal. A record
 * may also contain bytes that its sender has not changed. The receiver recognises them, as they are equal to its twin, and
 * does not store them. So neighbouring bytes that the two sides write do not overwrite each other.
 */
#ifndef RC_MIRROR_H
#define RC_MIRROR_H

#include "cuda_remote/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device_mirror; /* cuda_remote/server/placed/device_mirror.h */

struct mirror {
	uint64_t address, size; /* address: of this side's copy, a multiple of RC_MIRROR_PAGE unless shared_pages */
	uint8_t *twin;
	const uint8_t *copy;    /* where this process finds the bytes; NULL: at address */
	struct device_mirror *device; /* worker: of memory that only the device reads and writes; NULL: other memory */
	void *owner;            /* the client's session; the worker's context */
	uint64_t context;       /* client: handle of the context */
	bool attached;          /* client: to the host or to one stream: the host may use it while other streams work */
	bool ending;            /* client: is being freed, nothing is sent for it */
	void *module;           /* of a variable: the driver's library (worker), the library's handle (client) */
	bool shared_pages;      /* its pages hold other memory too; at the beginning it need not equal its twin */
	bool differs;           /* at the beginning it need not equal its twin */
	bool tracked;           /* the kernel tells which pages were written (pages.c) */
};

/* Sorted by address. The caller's lock guards it. */
struct mirror_table {
	struct mirror *list;
	size_t n, room;
};

/* ---- table.c ---- */

/* Adds a mirror and makes its twin, which holds zeros. The mirror's memory must hold zeros too, unless shared_pages or differs is
 * set. False: out of memory. */
bool mirror_add(struct mirror_table *table, const struct mirror *mirror);
/* The mirror that holds address; NULL: none. Valid until the table is changed. */
struct mirror *mirror_find(const struct mirror_table *table, uint64_t address);
/* The first mirror that ends after address; NULL: none. */
struct mirror *mirror_at_or_after(const struct mirror_table *table, uint64_t address);
/* Removes the mirror and frees its twin. */
void mirror_remove(struct mirror_table *table, struct mirror *mirror);

/* ---- changes.c ---- */

/* Records that are to be sent. */
struct mirror_changes {
	uint8_t *bytes;
	size_t used, room; /* room: at least RC_MIRROR_PAGE and a record's head */
	size_t last;       /* place of the last record's head; only valid if used is not 0 */
};

/* Compares the mirror with its twin from offset `from` on, a multiple of RC_MIRROR_PAGE, and appends a record for each change of
 * this side. Returns the offset at which the comparison stopped: the mirror's size, or less if the room is used up. */
uint64_t mirror_collect(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes);
/* The same for the offsets from..until-1 only. */
uint64_t mirror_compare(const struct mirror *mirror, uint64_t from, uint64_t until, struct mirror_changes *changes);
/* True if the mirror differs from its twin: the offsets of the first and the last byte that do. The twin stays as it is. */
bool mirror_differs(const struct mirror *mirror, uint64_t *first, uint64_t *last);
/* Reads the record at *at, and moves *at behind it. NULL: no record is left, or the record does not end before `end`. If all
 * records were read, *at is `end`. */
const uint8_t *mirror_next(const uint8_t **at, const uint8_t *end, struct rc_wire_change *record);
/* Stores the other side's changes; those that lie in one aligned word of 8 bytes, by one store. False: part of the record is
 * outside of the mirror. If this side has changed one of the bytes too, to another value, this side's value is lost: *both is set
 * to the address of the first such byte, unless *both has an address already. */
bool mirror_store(const struct mirror *mirror, const struct rc_wire_change *record, const uint8_t *bytes, uint64_t *both);

/* ---- pages.c: which pages were written ---- */

/* True if the kernel can report which pages were written. A process calls this before it gives up rights. */
bool mirror_pages_open(void);
/* Makes the kernel record which pages of the mirror are written from now on. The mirror must equal its
 * twin, unless `differs`. False: the kernel
 * does not do that. */
bool mirror_pages_begin(const struct mirror *mirror);
void mirror_pages_end(const struct mirror *mirror);
/* As mirror_collect, for a tracked mirror: compares only the pages that the kernel reports as written. */
uint64_t mirror_collect_written(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes);

#endif
