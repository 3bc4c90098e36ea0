/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A preloaded object. The first random number of 32 bits that the program asks getrandom for is the value of the variable DRAWN.
 * With such a number the client draws the place of its window of addresses. Writes "drawn" to stderr then.
 */
#define _GNU_SOURCE /* syscall */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
	static int used;
	const char *text = getenv("DRAWN");
	if (bytes == sizeof(uint32_t) && text && !__atomic_exchange_n(&used, 1, __ATOMIC_RELAXED)) {
		uint32_t number = (uint32_t)strtoul(text, NULL, 0);
		memcpy(to, &number, sizeof number);
		return write(STDERR_FILENO, "drawn\n", 6) == 6 ? (ssize_t)bytes : -1;
	}
	return syscall(SYS_getrandom, to, bytes, flags);
}
