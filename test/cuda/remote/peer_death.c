/* SPDX-License-Identifier: BSD-3-Clause */
/* The second server's workers are killed while its stream holds up the others'. */
#include "test/cuda/remote/peer.h"

/* What the lost server held up fails, at most two operations of each round. Each failure is reported by one call, which may
 * return before later ones occur. Then the session works. */
static void recovers(int device)
{
	int failures = 0;
	use(device);
	for (CUresult result = CUDA_ERROR_UNKNOWN; result != CUDA_SUCCESS; failures += result != CUDA_SUCCESS) {
		result = cuCtxSynchronize();
		CHECK(result == CUDA_SUCCESS || (result == CUDA_ERROR_DEVICE_UNAVAILABLE && failures < 6));
	}
	CHECK(failures);
	OK(cuCtxSynchronize());
}

void a_server_dies(void)
{
	struct held held;
	fill(5);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	ring_round(1, WORDS);
	use(2);
	OK(cuStreamSynchronize(places[2].stream));
	expect_at(places[2].memory + 12, there + 3, BYTES - 12);
	/* The second server's stream is held, and so is what waits for it. */
	use(1);
	hold_stream(&held, places[1].stream);
	for (uint32_t round = 2; round < 5; round++)
		ring_round(round, WORDS);
	puts("ready");
	fflush(stdout);
	CHECK(getchar() == '\n');
	release(&held);
	use(1);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyDtoD(places[0].memory, places[1].memory, 4), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyPeer(places[1].memory, places[1].context, places[0].memory, places[0].context, 4),
	       CUDA_ERROR_DEVICE_UNAVAILABLE);
	use(0);
	EXPECT(cuStreamWaitEvent(places[0].stream, places[1].event, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	recovers(2);
	recovers(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	OK(cuMemcpyPeerAsync(places[2].memory, places[2].context, places[0].memory, places[0].context, BYTES,
			     places[0].stream));
	OK(cuEventRecord(places[0].event, places[0].stream));
	OK(cuStreamWaitEvent(places[2].stream, places[0].event, 0));
	use(2);
	OK(cuStreamSynchronize(places[2].stream));
	expect_at(places[2].memory, there, BYTES);
}
