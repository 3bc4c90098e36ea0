/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that dies at byte n of what it puts or gets, for many n: the other gets all that was accepted before, then
 * one error, for ever the same; it finalizes and leaves nothing behind (pair.c looks).
 */
#include "config.h"

#include "test/channel/pair.h"
#include "test/faults/fault_transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint64_t bytes_at[] = { 0, 1, 7, 8, 9, 55, 56, 57, 63, 64, 65, 127, 4095, 4096, 16383, 16384, 16385,
				     32767, 32768, 32769, 65535, 65536, 65537, 300000 };
static uint64_t at; /* of the case that runs */

static void die_at_put(struct side *side)
{
	static uint8_t bytes[10000];
	uint64_t offset = 0;
	if (side->index == 0)
		fault_plan.die_put_at = at;
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	while (side->index == 0) { /* does not come back */
		pattern_fill(4, offset, bytes, sizeof bytes);
		put_all(side, bytes, sizeof bytes);
		offset += sizeof bytes;
	}
	int error = get_until_error(side, 4, &offset);
	CHECK(error == -ECONNRESET || error == -ETIMEDOUT);
	CHECK_IS(offset, at);
	struct iovec iov = { bytes, 1 };
	size_t moved;
	CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), error);
	CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), error);
}

static void die_at_get(struct side *side)
{
	static uint8_t bytes[10000];
	uint64_t offset = 0;
	if (side->index == 0)
		fault_plan.die_get_at = at;
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	if (side->index == 0) {
		get_until_error(side, 4, &offset); /* does not come back */
		CHECK(false);
	}
	int error = 0;
	size_t accepted = 0;
	while (!error) {
		pattern_fill(4, offset, bytes, sizeof bytes);
		struct iovec iov = { bytes, sizeof bytes };
		error = hr_channel_put(side->conn, &iov, 1, &accepted);
		if (!error && !accepted)
			CHECK(hr_channel_wait(side->channel, 1, PAIR_TIMEOUT_MS) >= 0);
		offset += error ? 0 : accepted;
	}
	CHECK(error == -ECONNRESET || error == -ETIMEDOUT);
	CHECK(offset >= at);
}

int main(void)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} transports[] = { { "shm", HR_TRANSPORT_SHM }, { "tcp", HR_TRANSPORT_TCP } };
	static const struct test_case cases[] = {
		{ "dies at a byte it puts", die_at_put, PAIR_OWN_SETUP | PAIR_0_DIES },
		{ "dies at a byte it gets", die_at_get, PAIR_OWN_SETUP | PAIR_0_DIES },
	};
	int failed = 0;
	for (size_t t = 0; t < 2; t++) {
		for (size_t c = 0; c < 2; c++) {
			for (size_t i = 0; i < sizeof bytes_at / sizeof bytes_at[0]; i++) {
				at = bytes_at[i];
				if (pair_run(&cases[c], transports[t].bit, transports[t].name, 1))
					continue;
				printf("FAIL: %s: %s, %llu\n", transports[t].name, cases[c].name,
				       (unsigned long long)at);
				failed++;
			}
			printf("%s: %s: done\n", transports[t].name, cases[c].name);
			fflush(stdout);
		}
	}
	return failed != 0;
}
