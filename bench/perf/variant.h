/* SPDX-License-Identifier: BSD-3-Clause */
/* A variant: one of the set-ups of a message path that a measurement compares, by layer, transport and settings. */
#ifndef PERF_VARIANT_H
#define PERF_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

enum layer { LAYER_CHANNEL, LAYER_CH3, LAYER_RAW_TCP };

/* A field that is 0 leaves the setting as it is: from the environment, or the library's default. */
struct variant {
	enum layer layer;
	uint32_t transports; /* HR_TRANSPORT_* set */
	uint32_t design;     /* enum hr_verbs_design */
	uint32_t qps;        /* HEADRACE_IB_QPS */
	uint32_t depth;      /* HEADRACE_IB_DEPTH */
	uint32_t chunk;      /* HEADRACE_IB_CHUNK, bytes */
	uint32_t rendezvous; /* 1, 2: HEADRACE_RENDEZVOUS read, write; 3: none, HEADRACE_EAGER_MAX at its limit */
	bool sleeps;         /* waits in hr_channel_wait or ch3_progress_wait; false: only spins */
};

#define VARIANTS_MAX 32

extern const char *const layer_names[];

/*
 * Sets the environment variables for the next endpoint that this process opens; a channel reads them when it is opened.
 * Variables that the variant leaves at 0 get the values that they had when the program started.
 */
void variant_settings(const struct variant *variant);

/* Returns the name of the variant's design, or of the settings' design; NULL in a build without verbs. Static storage,
 * or in the environment. */
const char *variant_design(const struct variant *variant);

/* Returns whether the setting accepts this value, and stores its range in *least and *most. Returns true if the build
 * does not have the setting; opening the channel then reports what is missing. */
bool variant_in_range(const char *variable, uint32_t value, uint64_t *least, uint64_t *most);

/* Returns how ch3 moves a long message, "read", "write" or "none"; NULL for other layers. */
const char *variant_rendezvous(const struct variant *variant);

/* Returns the value of variant.rendezvous for one of these names, or -1. */
int rendezvous_by_name(const char *name);

/* Returns the enum hr_verbs_design for a name, or -1. */
int design_by_name(const char *name);

#endif
