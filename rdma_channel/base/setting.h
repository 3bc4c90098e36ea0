/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: named values with a default, read from the environment. A module defines its settings beside the code that
 * uses them. headrace-info lists every setting that is linked into it, with its value and the value's origin.
 *
 *	HR_SETTING(timeout, "HEADRACE_TIMEOUT_MS", "10000", 1, 3600000, "time until a silent peer has failed, ms");
 *	...
 *	uint64_t ms;
 *	int error = hr_setting_u64(&timeout, &ms);
 *
 * A number may have a suffix k, M or G (powers of 1024). Any thread may read a setting.
 */
#ifndef HR_BASE_SETTING_H
#define HR_BASE_SETTING_H

#include <stddef.h>
#include <stdint.h>

struct hr_setting {
	const char *variable;      /* name in the environment */
	const char *default_value; /* as text */
	uint64_t min, max;         /* inclusive; both 0 for a setting that is not a number */
	const char *help;          /* one line, unit included */
};

#define HR_SETTING(name, variable, default_value, min, max, help)                                    \
	static const struct hr_setting name = { variable, default_value, min, max, help };           \
	static const struct hr_setting *const name##_listed                                          \
		__attribute__((used, section("hr_settings"))) = &name

/* Returns the value as text: from the environment if the variable is set and not empty, else the default. Valid until
 * the environment is changed. */
const char *hr_setting_text(const struct hr_setting *setting);

/* Stores the value as a number. -EINVAL: not a number, or out of range; the log then names the valid values. */
int hr_setting_u64(const struct hr_setting *setting, uint64_t *value);

/* Returns "environment" or "default". */
const char *hr_setting_origin(const struct hr_setting *setting);

/* Returns the number of settings linked into this library or program, and their array in *first. */
size_t hr_setting_list(const struct hr_setting *const **first);

#endif
