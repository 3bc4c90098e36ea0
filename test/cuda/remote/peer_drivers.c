/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers whose drivers wait for all streams before they allocate memory or load code, or whose streams share a queue. */
#include "test/cuda/remote/peer.h"

#include <unistd.h>

static void *load(void *text)
{
	CUmodule module;
	use(1);
	OK(cuModuleLoadData(&module, text));
	return module;
}

/* The driver of server 1, which loads code, waits for stream 1, and stream 1 waits for a copy. */
void code_is_loaded(void)
{
	struct held held;
	pthread_t thread;
	void *module;
	fill(51);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	hold_stream(&held, places[0].stream);
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, BYTES, places[1].stream));
	CHECK(!pthread_create(&thread, NULL, load, (void *)(uintptr_t)test_program("double\nappend nothing\n")));
	usleep(200000); /* time for the load to begin; the results are the same if it begins later */
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
	CHECK(!pthread_join(thread, &module));
	expect_at(places[1].memory, there, BYTES);
	use(1);
	OK(cuModuleUnload(module));
}

/* Each copy needs a gate in the stream. The server must not allocate memory for gates then: its driver would wait for streams. */
void many_are_held(void)
{
	struct held held;
	use(0);
	hold_stream(&held, places[0].stream);
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	for (int i = 0; i < 1500; i++)
		OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, 4,
				     places[1].stream));
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
}

void links_are_being_opened(void)
{
	fill(50);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, BYTES, places[0].stream));
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	OK(cuMemcpyPeerAsync(places[2].memory, places[2].context, places[1].memory, places[1].context, BYTES, places[1].stream));
	OK(cuStreamSynchronize(places[1].stream));
	expect_at(places[2].memory, there, BYTES);
}

/* Work of one queue is done in the order of the calls, so all this ends if nothing waits in it for work that is issued later.
 * Each copy has a stream that waits for it, at the source, at the target, or at a third server. */
void one_queue(void)
{
	fill(70);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < DEVICES; i++) {
			struct place *here = &places[i], *next = &places[(i + 1) % DEVICES];
			CUstream stream = places[(i + round) % DEVICES].stream;
			use((i + round) % DEVICES);
			OK(cuMemcpyPeerAsync(next->memory, next->context, here->memory, here->context, BYTES, stream));
			OK(cuEventRecord(places[(i + round) % DEVICES].event, stream));
			for (int other = 0; other < DEVICES; other++) {
				OK(cuStreamWaitEvent(places[other].other, places[(i + round) % DEVICES].event, 0));
				OK(cuStreamWaitEvent(places[other].stream, places[(i + round) % DEVICES].event, 0));
			}
		}
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		OK(cuStreamSynchronize(places[i].stream));
		expect_at(places[i].memory, there, BYTES);
	}
}
