/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the settings of a variant, and converts names of its settings. */
#include "config.h"
#include "variant.h"

#include "headrace/channel.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const layer_names[] = { "channel", "ch3", "raw" };

static const char *const design_names[] = {
	[HR_VERBS_BASIC] = "basic",
	[HR_VERBS_PIGGYBACK] = "piggyback",
	[HR_VERBS_PIPELINE] = "pipeline",
	[HR_VERBS_ZEROCOPY] = "zerocopy",
};

static const char *const rendezvous_names[] = { NULL, "read", "write", "none" };

enum { RENDEZVOUS_NONE = 3 }; /* the index of "none" */

/* An environment variable that variants set, and its value when the program started. */
struct kept {
	const char *name;
	char *at_first; /* NULL: it was not set */
	bool known;
};

static void set_text(struct kept *kept, const char *text)
{
	if (!kept->known) {
		const char *now = getenv(kept->name);
		kept->at_first = now ? strdup(now) : NULL;
		kept->known = true;
	}
	const char *wanted = text ? text : kept->at_first;
	if (wanted ? setenv(kept->name, wanted, 1) : unsetenv(kept->name)) {
		fprintf(stderr, "headrace-perf: cannot set %s: %s\n", kept->name, strerror(errno));
		exit(EXIT_FAILURE);
	}
}

static void set(struct kept *kept, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	set_text(kept, value ? text : NULL);
}

void variant_settings(const struct variant *variant)
{
	static struct kept qps = { "HEADRACE_IB_QPS", NULL, false }, depth = { "HEADRACE_IB_DEPTH", NULL, false },
			   chunk = { "HEADRACE_IB_CHUNK", NULL, false },
			   rendezvous = { "HEADRACE_RENDEZVOUS", NULL, false },
			   eager_max = { "HEADRACE_EAGER_MAX", NULL, false };
	bool none = variant->rendezvous == RENDEZVOUS_NONE;
	set(&qps, variant->qps);
	set(&depth, variant->depth);
	set(&chunk, variant->chunk);
	set_text(&rendezvous, none ? NULL : rendezvous_names[variant->rendezvous]);
	set(&eager_max, none ? 1u << 30 : 0);
}

/* Returns a setting of the channel; NULL: this build does not have it. */
static const struct hr_setting *find_setting(const char *variable)
{
	const struct hr_setting *const *first;
	size_t n = hr_setting_list(&first);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(first[i]->variable, variable))
			return first[i];
	return NULL;
}

bool variant_in_range(const char *variable, uint32_t value, uint64_t *least, uint64_t *most)
{
	const struct hr_setting *setting = find_setting(variable);
	if (!setting)
		return true;
	*least = setting->min;
	*most = setting->max;
	return value >= *least && value <= *most;
}

const char *variant_design(const struct variant *variant)
{
	if (variant->design)
		return design_names[variant->design];
	const struct hr_setting *setting = find_setting("HEADRACE_IB_DESIGN");
	return setting ? hr_setting_text(setting) : NULL;
}

const char *variant_rendezvous(const struct variant *variant)
{
	if (variant->layer != LAYER_CH3)
		return NULL;
	if (variant->rendezvous)
		return rendezvous_names[variant->rendezvous];
	const struct hr_setting *setting = find_setting("HEADRACE_RENDEZVOUS");
	return setting ? hr_setting_text(setting) : NULL;
}

int rendezvous_by_name(const char *name)
{
	for (int i = 1; i <= RENDEZVOUS_NONE; i++)
		if (!strcmp(name, rendezvous_names[i]))
			return i;
	return -1;
}

int design_by_name(const char *name)
{
	for (int i = HR_VERBS_BASIC; i <= HR_VERBS_ZEROCOPY; i++)
		if (!strcmp(name, design_names[i]))
			return i;
	return -1;
}
