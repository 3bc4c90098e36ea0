/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-info: the section settings. It has the settings linked into this program (channel, ch3, door), and those of
 * the CUDA libraries. Each library has the table of its settings in the section hr_settings
 * (rdma_channel/base/setting.h); libraries.c loads the library and reads the table in place.
 */
#include "bench/info/info.h"

#include "bench/info/libraries.h"
#include "rdma_channel/base/setting.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_MAX 256

/* The variables already shown. Several libraries may have the same setting; it is shown once. */
struct seen {
	const char *variables[SETTINGS_MAX];
	size_t n;
};

static bool is_new(struct seen *seen, const char *variable)
{
	for (size_t i = 0; i < seen->n; i++)
		if (!strcmp(seen->variables[i], variable))
			return false;
	if (seen->n < SETTINGS_MAX)
		seen->variables[seen->n++] = variable;
	return true;
}

static void print_settings(void *context, const struct hr_setting *const *first, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_new(context, first[i]->variable))
			continue;
		const char *value = hr_setting_text(first[i]);
		printf("  %-28s %-12s %-12s %s\n", first[i]->variable, *value ? value : "-",
		       hr_setting_origin(first[i]), first[i]->help);
	}
}

void info_settings(void)
{
	struct seen seen = { .n = 0 };
	const struct hr_setting *const *first;
	size_t n = hr_setting_list(&first);
	puts("Settings");
	print_settings(&seen, first, n);
	info_library_settings(print_settings, &seen);
}
