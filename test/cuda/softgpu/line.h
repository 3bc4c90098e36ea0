/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes of a test tell each other over a socket. */
#ifndef TEST_SOFTGPU_LINE_H
#define TEST_SOFTGPU_LINE_H

#include "test/cuda/softgpu/driver.h"

#include <unistd.h>

static inline void say(int line, const void *what, size_t bytes)
{
	CHECK(write(line, what, bytes) == (ssize_t)bytes);
}

/* Waits for all bytes. */
static inline void hear(int line, void *what, size_t bytes)
{
	char *to = what;
	for (size_t got = 0; got < bytes;) {
		ssize_t more = read(line, to + got, bytes - got);
		CHECK(more > 0);
		got += (size_t)more;
	}
}

#endif
