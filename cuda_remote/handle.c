/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots that all objects behind handles live in. */
#include "cuda_remote/handle.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (UINT64_C(1) << 30) /* two million handles */
#define GROW_BYTES (UINT64_C(64) << 10)

static struct {
	pthread_mutex_t lock;
	char *base;      /* set once; read by handle_valid without the lock */
	uint64_t grown;  /* bytes that may be used; only grows, read with acquire */
	handle_t *first_free, *last_free;
} arena = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Defined in a program built with -fsanitize=address. LeakSanitizer looks for pointers in mapped memory only if the
 * memory was registered by this function. */
extern void __lsan_register_root_region(const void *start, size_t size) __attribute__((weak));

static void append_free(handle_t *slot)
{
	slot->next = NULL;
	if (arena.last_free)
		arena.last_free->next = slot;
	else
		arena.first_free = slot;
	arena.last_free = slot;
}

static bool grow(void)
{
	if (!arena.base) {
		void *at = mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return false;
		arena.base = at;
	}
	if (arena.grown == ARENA_BYTES || mprotect(arena.base + arena.grown, GROW_BYTES, PROT_READ | PROT_WRITE))
		return false;
	if (__lsan_register_root_region)
		__lsan_register_root_region(arena.base + arena.grown, GROW_BYTES);
	for (uint64_t i = 0; i < GROW_BYTES; i += HANDLE_SLOT_BYTES)
		append_free((handle_t *)(void *)(arena.base + arena.grown + i));
	/* Orders base and the access rights before grown; pairs with the acquire in handle_valid. */
	__atomic_store_n(&arena.grown, arena.grown + GROW_BYTES, __ATOMIC_RELEASE);
	return true;
}

void *handle_new(enum handle_kind kind, size_t size)
{
	if (size > HANDLE_SLOT_BYTES)
		return NULL;
	pthread_mutex_lock(&arena.lock);
	handle_t *slot = NULL;
	if (arena.first_free || grow()) {
		slot = arena.first_free;
		arena.first_free = slot->next;
		if (!arena.first_free)
			arena.last_free = NULL;
	}
	pthread_mutex_unlock(&arena.lock);
	if (!slot)
		return NULL;
	memset((char *)slot + sizeof *slot, 0, HANDLE_SLOT_BYTES - sizeof *slot);
	slot->next = NULL;
	__atomic_store_n(&slot->kind, kind, __ATOMIC_RELAXED);
	return slot;
}

bool handle_retire(void *object)
{
	handle_t *slot = object;
	return __atomic_exchange_n(&slot->kind, HANDLE_NONE, __ATOMIC_RELAXED) != HANDLE_NONE;
}

void handle_release(void *object)
{
	pthread_mutex_lock(&arena.lock);
	append_free(object);
	pthread_mutex_unlock(&arena.lock);
}

bool handle_valid(const void *pointer, enum handle_kind kind)
{
	/* Pairs with the release in grow; the unsigned difference also rejects addresses below base. */
	uint64_t grown = __atomic_load_n(&arena.grown, __ATOMIC_ACQUIRE);
	uint64_t offset = (uint64_t)(uintptr_t)pointer - (uint64_t)(uintptr_t)arena.base;
	if (offset >= grown || offset % HANDLE_SLOT_BYTES)
		return false;
	return __atomic_load_n(&((const handle_t *)pointer)->kind, __ATOMIC_RELAXED) == kind;
}
