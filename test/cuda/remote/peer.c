/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and waits between the GPUs of three servers.
 *	peer all         copies in all shapes and directions, their order in streams, waits for events, a ring; the second server
 *	                 maps no pinned memory
 *	peer defaults    the order of copies in default streams; also for three GPUs of one server
 *	peer beside      copies in default streams; the current context is of another GPU of the target's server
 *	peer events      waits for events of another server, until a line comes from stdin
 *	peer shapes      only the copies, and the ring
 *	peer same-memory copies of several servers into the same memory; the script delays what the first server sends
 *	peer source      the source of a copy to a server changes before a copy from another server lets its stream go on
 *	peer waiting     with drivers that wait for all streams before they allocate memory or load code (refusing.c)
 *	peer queues      with drivers whose streams share a hardware queue (refusing.c)
 *	peer death       writes a line and reads one from stdin; by then the second server's workers must have been killed
 *	peer refused     the settings are refused
 */
#include "test/cuda/remote/peer.h"

#include <poll.h>

static void shapes(void)
{
	default_copies_in_all_directions();
	peer_copies();
	boxes();
	a_copy_is_in_its_streams_order(0, 1, 2);
	ring();
}

static void defaults(void)
{
	for (int current = 0; current < DEVICES; current++)
		default_streams_of_both(current);
}

static void beside(void)
{
	for (int round = 0; round < 3; round++)
		for (int which = 0; which < DEVICES; which++)
			ordered_with_current(which);
	default_streams_of_both(2);
}

/* Of two servers. */
static void events(void)
{
	CUcontext contexts[2];
	CUstream streams[2];
	CUevent event;
	struct pollfd line = { 0, POLLIN, 0 };
	for (int i = 0; i < 2; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	}
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	do {
		OK(cuCtxSetCurrent(contexts[1]));
		OK(cuEventRecord(event, streams[1]));
		OK(cuCtxSetCurrent(contexts[0]));
		OK(cuStreamWaitEvent(streams[0], event, 0));
		OK(cuStreamSynchronize(streams[0]));
	} while (poll(&line, 1, 10) == 0);
}

static void all(void)
{
	default_copies_in_all_directions();
	peer_copies();
	peer_copies_wait();
	boxes();
	a_copy_is_in_its_streams_order(0, 1, 0);
	a_copy_is_in_its_streams_order(0, 1, 1);
	a_copy_is_in_its_streams_order(0, 1, 2);
	defaults();
	events_of_another_server();
	waits_cross();
	threads_do_not_block_each_other();
	ends_wait_for_copies();
	pinned_memory_is_awaited(0, 1);
	pinned_memory_is_awaited(1, 0);
	pinned_memory_is_awaited(0, 2);
	copies_into_the_same_memory(0, 1);
	copies_into_the_same_memory(2, 0);
	captures_forbid();
	arrays_between_servers();
	memory_of_another_server(0, 1);
	memory_of_another_server(1, 2);
	default_stream_of_another_server(0, 1);
	default_stream_of_another_server(1, 2);
	peer_copy_waits_for_current(0, 1);
	managed_memory_of_another_server(0, 1);
	managed_memory_of_another_server(1, 2);
	ring();
}

static void same_memory(void)
{
	peer_copies(); /* which opens the links */
	copies_into_the_same_memory(0, 1);
	copies_into_the_same_memory(0, 2);
}

static void source(void)
{
	use(0);
	kernel("wait");
	source_changes(true);
	source_changes(false);
}

static void waiting(void)
{
	links_are_being_opened();
	many_are_held();
	code_is_loaded();
}

static void queues(void)
{
	boxes();
	one_queue();
	waits_cross();
	ring();
}

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "all", all },	      { "defaults", defaults },	      { "beside", beside }, { "shapes", shapes },
	{ "source", source }, { "same-memory", same_memory }, { "queues", queues }, { "waiting", waiting },
	{ "death", a_server_dies },
};

int main(int argc, char **argv)
{
	const struct mode *mode = modes, *end = modes + sizeof modes / sizeof *modes;
	const char *name = argc == 2 ? argv[1] : "";
	bool dies = !strcmp(name, "death"); /* what the dead server had cannot be given back */
	CUresult result = cuInit(0);
	if (!strcmp(name, "refused")) {
		EXPECT(result, CUDA_ERROR_INVALID_VALUE);
		return 0;
	}
	OK(result);
	if (!strcmp(name, "events")) {
		events();
		return 0;
	}
	while (mode < end && strcmp(mode->name, name))
		mode++;
	if (mode == end)
		return 2;
	set_up();
	mode->run();
	for (int i = 0; i < DEVICES; i++)
		if (!dies || i != 1)
			tear_down(&places[i]);
	free(there);
	free(back);
	return 0;
}
