/* SPDX-License-Identifier: BSD-3-Clause */
/* What the administrator has set for each GPU: exclusive or shared, and a session's quota of its memory. */
#ifndef RC_DAEMON_GPUS_H
#define RC_DAEMON_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#define GPUS_MAX 64

struct gpu_settings {
	bool exclusive[GPUS_MAX];  /* at most one session has the GPU */
	uint64_t memory[GPUS_MAX]; /* bytes that one session may have; 0: no quota */
};

/* Reads "[INDEX:]exclusive", "[INDEX:]shared"; "[INDEX:]BYTES", "[INDEX:]none", with the suffixes k, M, G and T. Without
 * an index the value is for every GPU. -EINVAL: the text is wrong, and *want says what is right. */
int gpus_set_mode(struct gpu_settings *settings, const char *text, const char **want);
int gpus_set_memory(struct gpu_settings *settings, const char *text, const char **want);

/* A GPU that keeps a session on GPU wanted from running beside a session on GPU taken (indices, or RC_SERVER_ALL_GPUS),
 * where the server has this many GPUs; -1: none. */
int gpus_conflict(const struct gpu_settings *settings, uint32_t gpus, uint32_t wanted, uint32_t taken);

#endif
