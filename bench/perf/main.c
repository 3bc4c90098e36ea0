/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf: measures messages between two processes and remote CUDA calls. See headrace-perf(1). */
#include "config.h"

#include "cuda/cuda_calls.h"
#include "measure.h"
#include "options.h"
#include "cuda/peer_copies.h"
#include "remote.h"
#include "wake.h"

#include <stdio.h>
#include <stdlib.h>

static int run(const struct options *options, const char *self)
{
#ifdef HAVE_CUDA
	if (options->test == TEST_CUDA)
		return measure_cuda(options, self);
	if (options->test == TEST_CUDA_CLIENT)
		return measure_cuda_client(options);
	if (options->test == TEST_PEER)
		return measure_peer(options, self);
	if (options->test == TEST_PEER_CLIENT)
		return measure_peer_client(options);
#else
	if (options->test >= TEST_CUDA) {
		fprintf(stderr, "%s: built without the CUDA toolkit: no remote CUDA here\n", self);
		return -1;
	}
#endif
	if (options->test == TEST_WAKE)
		return measure_wake(options);
	return measure_messages(options);
}

int main(int argc, char **argv)
{
	struct options options;
	options_parse(&options, argc, argv);
	if (options.listen)
		return remote_listen(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (options.connect && (options.control = remote_connect(&options, argc, argv)) < 0)
		return EXIT_FAILURE;
	return run(&options, argv[0]) ? EXIT_FAILURE : EXIT_SUCCESS;
}
