/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that leaves its worker in a wait without end, on the first connection: orphan gap | kernel | copy | function.
 * Says "waiting" when the worker waits, then waits to be killed (by the end of its standard input at the latest).
 */
#include "test/cuda/server/raw_client.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static raw_t raw;
static uint64_t number;
static uint32_t context;

static void synchronize(void)
{
	uint64_t stream = 0;
	raw_send(&raw, ++number, RC_CALL_cuStreamSynchronize, context, &stream, sizeof stream, NULL, 0);
}

static uint64_t allocate(uint64_t bytes)
{
	uint64_t address = 0;
	if (!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &bytes, sizeof bytes, NULL, 0))
		memcpy(&address, raw.results, sizeof address);
	return address;
}

/* A kernel of the engine double that waits for a flag which nobody sets. Returns the flag. */
static uint64_t endless_kernel(void)
{
	uint64_t kernel = 0, flag = allocate(1 << 20);
	struct rc_wire_launch launch = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .parameters = sizeof flag };
	struct rc_args_cuMemsetD8_v2 clear = { .dstDevice = flag, .N = 1 << 20 };
	raw_send(&raw, ++number, RC_CALL_cuMemsetD8_v2, context, &clear, sizeof clear, NULL, 0);
	if (raw_load(&raw, ++number, context, "double\nwait\n", 13, NULL, &kernel))
		return 0;
	launch.function = kernel;
	raw_send(&raw, ++number, RC_CALL_launch, context, &launch, sizeof launch, &flag, sizeof flag);
	return flag;
}

/* A long copy to the device behind the kernel: its slots are waited for when the connection is closed. */
static void copy_behind(uint64_t flag)
{
	static const uint8_t bytes[4096];
	struct rc_wire_copy copy = { .copy = 1, .box = { flag, 4096, 4096, 4096, 1, 1 } };
	struct rc_wire_chunk chunk = { 1, 0 };
	raw_send(&raw, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0);
	raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes);
}

static void host_function(void)
{
	struct rc_wire_host_function call = { .function = 1 };
	raw_send(&raw, ++number, RC_CALL_host_function, context, &call, sizeof call, NULL, 0);
	for (int i = 0; i < 100 && !raw.hosts; i++)
		raw_poll(&raw, 100);
}

int main(int argc, char **argv)
{
	char byte;
	if (argc != 2 || raw_connect(&raw, NULL, RC_SERVER_ALL_GPUS))
		return 1;
	if (!strcmp(argv[1], "gap")) {
		raw_send_hello(&raw, 5);
	} else {
		context = raw_hello(&raw, ++number, 0, NULL);
		if (!context)
			return 1;
		if (!strcmp(argv[1], "function"))
			host_function();
		else if (!strcmp(argv[1], "copy"))
			copy_behind(endless_kernel());
		else if (!endless_kernel())
			return 1;
		if (strcmp(argv[1], "copy"))
			synchronize();
	}
	/* Until the worker has taken it up. */
	for (int i = 0; i < 3; i++)
		raw_poll(&raw, 100);
	if (raw.failed)
		return 1;
	printf("waiting\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
}
