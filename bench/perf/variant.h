/* SPDX-License-Identifier: BSD-3-Clause */
/* One way to set a message path up, of several that a measurement compares: layer, transport, and what verbs lets
 * choose. */
#ifndef PERF_VARIANT_H
#define PERF_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

enum layer { LAYER_CHANNEL, LAYER_CH3, LAYER_RAW_TCP };

/* A field that is 0 leaves the setting as it is: the environment's, else the library's own default. */
struct variant {
	enum layer layer;
	uint32_t transports; /* HR_TRANSPORT_* set */
	uint32_t design;     /* enum hr_verbs_design */
	uint32_t qps;        /* HEADRACE_IB_QPS */
	uint32_t depth;      /* HEADRACE_IB_DEPTH */
	uint32_t chunk;      /* HEADRACE_IB_CHUNK, bytes */
	uint32_t rendezvous; /* HEADRACE_RENDEZVOUS: 1 read, 2 write */
	bool sleeps;         /* waits in hr_channel_wait (ch3_progress_wait), which sleeps after a spin; else it only spins */
};

#define VARIANTS_MAX 32

extern const char *const layer_names[];

/*
 * Sets the environment for the next endpoint that this process opens, which a channel reads when it is opened; the
 * settings that an earlier variant had and this one has not are as they were when the program began.
 */
void variant_settings(const struct variant *variant);

/* The design's name: the variant's own, else what the settings give; NULL where there is no verbs. Static storage, or
 * the environment's. */
const char *variant_design(const struct variant *variant);

/* Does the setting take this value? Its range is left in *least and *most. True for a setting that was not built in:
 * then opening the channel says what is missing. */
bool variant_in_range(const char *variable, uint32_t value, uint64_t *least, uint64_t *most);

/* "read" or "write": how ch3 moves a long message; NULL for another layer. */
const char *variant_rendezvous(const struct variant *variant);

/* The variant's number for one of those names, or -1. */
int rendezvous_by_name(const char *name);

/* enum hr_verbs_design of a name, or -1. */
int design_by_name(const char *name);

#endif
