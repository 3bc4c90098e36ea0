/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures copies between the GPUs of two servers. */
#ifndef PERF_PEER_COPIES_H
#define PERF_PEER_COPIES_H

#include "options.h"

/* headrace-perf peer: compares the versions of options->peer, in turn, in processes of their own. */
int measure_peer(const struct options *options, const char *self);

/* headrace-perf peer-client: the CUDA program. Writes a struct peer_result for each size to options->result_fd. */
int measure_peer_client(const struct options *options);

#define PEER_SAMPLES 100

struct peer_result {
	unsigned n;
	double us[PEER_SAMPLES]; /* of one copy, from the call until a synchronisation returns */
	double stream_MBps;      /* of several copies that are issued one after another */
	double client_s_per_GB;  /* processor time of all threads of the client meanwhile */
};

#endif
