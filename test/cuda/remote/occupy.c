/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded object: before main, the program has memory of its own at the addresses where servers place theirs. The text of
 * OCCUPY is the first address; from there on, 1 TiB is taken. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static __attribute__((constructor)) void occupy(void)
{
	const char *text = getenv("OCCUPY");
	if (!text)
		return;
	void *wanted = (void *)(uintptr_t)strtoull(text, NULL, 0);
	void *got = mmap(wanted, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (got != wanted)
		_exit(99);
}
