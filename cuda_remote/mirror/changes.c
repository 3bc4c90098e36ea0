/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of changed bytes: making them by comparison with the twin, and storing them. */
#include "cuda_remote/mirror/mirror.h"

#include <string.h>

/* A record is continued, and not a new one begun, over up to this number of bytes that did not change. */
#define GAP 64

static uint8_t *memory_of(const struct mirror *mirror)
{
	return (uint8_t *)(uintptr_t)mirror->address;
}

static const uint8_t *bytes_of(const struct mirror *mirror)
{
	return mirror->copy ? mirror->copy : memory_of(mirror);
}

/* Another thread of the program, or a kernel of another stream, may be writing the memory: what it writes is found the next time.
 * ThreadSanitizer does not look at these reads. */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread"))) static bool is_same(const volatile uint8_t *memory, const uint8_t *twin, size_t n)
{
	while (n && *memory == *twin)
		n--, memory++, twin++;
	return !n;
}

__attribute__((no_sanitize("thread"))) static void take(uint8_t *to, const volatile uint8_t *memory, size_t n)
{
	while (n--)
		*to++ = *memory++;
}
#else
static bool is_same(const uint8_t *memory, const uint8_t *twin, size_t n)
{
	return !memcmp(memory, twin, n);
}

static void take(uint8_t *to, const uint8_t *memory, size_t n)
{
	memcpy(to, memory, n);
}
#endif

/* The changed bytes first..last of a page, of which page is a copy. Appends them; false: no room. */
static bool append(const struct mirror *mirror, uint64_t offset, const uint8_t *page, size_t first, size_t last,
		   struct mirror_changes *changes)
{
	struct rc_wire_change record = { 0, 0 };
	uint64_t begin = mirror->address + offset + first, end = mirror->address + offset + last + 1;
	if (changes->used)
		memcpy(&record, changes->bytes + changes->last, sizeof record);
	/* The bytes between are the end of a page of this mirror whose changes are sent, and the begin of this page. */
	uint64_t before = record.address + record.bytes;
	if (changes->used && offset && before == mirror->address + offset && first <= GAP)
		begin = before;
	else
		record.bytes = 0;
	size_t head = record.bytes ? 0 : sizeof record, n = end - begin;
	if (n + head > changes->room - changes->used)
		return false;
	if (head) {
		record.address = begin;
		changes->last = changes->used;
		changes->used += head;
	}
	record.bytes += n;
	memcpy(changes->bytes + changes->last, &record, sizeof record);
	memcpy(changes->bytes + changes->used, page + (begin - mirror->address - offset), n);
	changes->used += n;
	memcpy(mirror->twin + (begin - mirror->address), page + (begin - mirror->address - offset), n);
	return true;
}

uint64_t mirror_compare(const struct mirror *mirror, uint64_t from, uint64_t until, struct mirror_changes *changes)
{
	uint8_t page[RC_MIRROR_PAGE];
	for (uint64_t offset = from; offset < until; offset += RC_MIRROR_PAGE) {
		size_t n = until - offset < RC_MIRROR_PAGE ? until - offset : RC_MIRROR_PAGE, first = 0, last = n;
		const uint8_t *twin = mirror->twin + offset;
		if (is_same(bytes_of(mirror) + offset, twin, n))
			continue;
		take(page, bytes_of(mirror) + offset, n);
		while (first < n && page[first] == twin[first])
			first++;
		if (first == n)
			continue;
		while (page[last - 1] == twin[last - 1])
			last--;
		/* A change near the end of a page is sent with the bytes up to the end, so that the next page can follow. */
		if (n - last <= GAP)
			last = n;
		if (!append(mirror, offset, page, first, last - 1, changes))
			return offset;
	}
	return until;
}

uint64_t mirror_collect(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes)
{
	return mirror->tracked ? mirror_collect_written(mirror, from, changes) :
				 mirror_compare(mirror, from, mirror->size, changes);
}

bool mirror_differs(const struct mirror *mirror, uint64_t *first, uint64_t *last)
{
	bool any = false;
	for (uint64_t offset = 0; offset < mirror->size; offset += RC_MIRROR_PAGE) {
		uint8_t page[RC_MIRROR_PAGE];
		size_t n = mirror->size - offset < RC_MIRROR_PAGE ? mirror->size - offset : RC_MIRROR_PAGE;
		const uint8_t *twin = mirror->twin + offset;
		if (is_same(bytes_of(mirror) + offset, twin, n))
			continue;
		take(page, bytes_of(mirror) + offset, n);
		for (size_t i = 0; i < n; i++)
			if (page[i] != twin[i]) {
				*first = any ? *first : offset + i;
				*last = offset + i;
				any = true;
			}
	}
	return any;
}

const uint8_t *mirror_next(const uint8_t **at, const uint8_t *end, struct rc_wire_change *record)
{
	if ((size_t)(end - *at) < sizeof *record)
		return NULL;
	memcpy(record, *at, sizeof *record);
	const uint8_t *bytes = *at + sizeof *record;
	if (!record->bytes || record->bytes > (uint64_t)(end - bytes))
		return NULL;
	*at = bytes + record->bytes;
	return bytes;
}

static void store_bytes(uint8_t *to, uint8_t *twin, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (from[i] != twin[i])
			to[i] = twin[i] = from[i];
}

static bool has_zero_byte(uint64_t word)
{
	return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/* Stores what differs from the twin, in one store where all 8 bytes do. */
static void store_word(uint8_t *to, uint8_t *twin, const uint8_t *from)
{
	uint64_t fresh, old;
	memcpy(&fresh, from, sizeof fresh);
	memcpy(&old, twin, sizeof old);
	if (has_zero_byte(fresh ^ old)) {
		store_bytes(to, twin, from, sizeof fresh);
		return;
	}
	memcpy(to, &fresh, sizeof fresh);
	memcpy(twin, &fresh, sizeof fresh);
}

/* Stores what differs from the twin by one store to the aligned word of 8 bytes that holds all n bytes: a kernel or a thread that
 * waits for a value in them sees the old value or the new one. Other bytes of the word stay, whoever writes them meanwhile. */
static void store_at_once(uint8_t *to, uint8_t *twin, const uint8_t *from, size_t n)
{
	uint64_t *word = (uint64_t *)((uintptr_t)to & ~(uintptr_t)7), old, mask, value;
	uint8_t mask_bytes[8] = { 0 }, value_bytes[8] = { 0 };
	size_t at = (uintptr_t)to & 7;
	for (size_t i = 0; i < n; i++)
		if (from[i] != twin[i]) {
			mask_bytes[at + i] = 0xff;
			value_bytes[at + i] = twin[i] = from[i];
		}
	memcpy(&mask, mask_bytes, sizeof mask);
	memcpy(&value, value_bytes, sizeof value);
	if (!mask)
		return;
	/* Release: who sees the value sees what earlier records have stored. */
	old = __atomic_load_n(word, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(word, &old, (old & ~mask) | value, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

#define BLOCK 64 /* compared at once */

/* The other side has changed some of n bytes, at most BLOCK. Notes the first one that this side has changed to another value. */
static void find_both(const uint8_t *to, const uint8_t *twin, const uint8_t *from, size_t n, uint64_t *both)
{
	uint8_t own[BLOCK];
	if (*both || is_same(to, twin, n))
		return;
	take(own, to, n);
	for (size_t i = 0; i < n && !*both; i++)
		if (own[i] != twin[i] && from[i] != twin[i] && own[i] != from[i])
			*both = (uint64_t)(uintptr_t)(to + i);
}

bool mirror_store(const struct mirror *mirror, const struct rc_wire_change *record, const uint8_t *bytes, uint64_t *both)
{
	uint64_t offset = record->address - mirror->address, n = record->bytes;
	if (record->address < mirror->address || offset >= mirror->size || n > mirror->size - offset)
		return false;
	uint8_t *to = memory_of(mirror) + offset, *twin = mirror->twin + offset;
	if (((uintptr_t)to & 7) + n <= 8) {
		find_both(to, twin, bytes, n, both);
		store_at_once(to, twin, bytes, n);
		return true;
	}
	for (; n >= BLOCK; n -= BLOCK, to += BLOCK, twin += BLOCK, bytes += BLOCK)
		if (memcmp(bytes, twin, BLOCK)) {
			find_both(to, twin, bytes, BLOCK, both);
			for (size_t i = 0; i < BLOCK; i += sizeof(uint64_t))
				store_word(to + i, twin + i, bytes + i);
		}
	find_both(to, twin, bytes, n, both);
	store_bytes(to, twin, bytes, n);
	return true;
}
