/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: one named value each, with a default, read from the environment. A module defines its own beside the code
 * that uses them; headrace-info lists every setting linked into it with its value and where that came from.
 *
 *	HR_SETTING(timeout, "HEADRACE_TIMEOUT_MS", "10000", 1, 3600000, "a silent peer is given up after this, ms");
 *	...
 *	uint64_t ms;
 *	int error = hr_setting_u64(&timeout, &ms);
 *
 * Numbers may carry a suffix k, M or G (powers of 1024). Any thread may read.
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

/* The value as text: the environment's if set and not empty, else the default. Lives as long as the environment. */
const char *hr_setting_text(const struct hr_setting *setting);

/* The value as a number. -EINVAL, with a line in the log that says what would be right, if none or out of range. */
int hr_setting_u64(const struct hr_setting *setting, uint64_t *value);

/* "environment" or "default". */
const char *hr_setting_origin(const struct hr_setting *setting);

/* Every setting linked into this library or program: first..first+n-1. */
size_t hr_setting_list(const struct hr_setting *const **first);

#endif
