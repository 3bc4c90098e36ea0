/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and validates HEADRACE_* settings from the environment. */
#include "rdma_channel/base/setting.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* The linker defines these as start and end of the section hr_settings. Weak: a program may have no settings at all. */
extern const struct hr_setting *const __start_hr_settings[] __attribute__((weak, visibility("hidden")));
extern const struct hr_setting *const __stop_hr_settings[] __attribute__((weak, visibility("hidden")));

static const char *from_environment(const struct hr_setting *setting)
{
	const char *text = getenv(setting->variable);
	return text && *text ? text : NULL;
}

const char *hr_setting_text(const struct hr_setting *setting)
{
	const char *text = from_environment(setting);
	return text ? text : setting->default_value;
}

static unsigned suffix_shift(char suffix)
{
	switch (suffix) {
	case 'k': case 'K': return 10;
	case 'm': case 'M': return 20;
	case 'g': case 'G': return 30;
	default: return 0;
	}
}

/* Parses decimal digits and at most one suffix. Anything else is an error, so that "10x" is not taken for 10. */
static bool parse_u64(const char *text, uint64_t *value)
{
	if (*text < '0' || *text > '9')
		return false;
	char *end;
	errno = 0;
	uint64_t number = strtoull(text, &end, 10);
	unsigned shift = suffix_shift(*end);
	if (shift)
		end++;
	if (errno || *end || number > UINT64_MAX >> shift)
		return false;
	*value = number << shift;
	return true;
}

int hr_setting_u64(const struct hr_setting *setting, uint64_t *value)
{
	const char *text = hr_setting_text(setting);
	uint64_t number;
	if (!parse_u64(text, &number) || number < setting->min || number > setting->max) {
		hr_log(HR_LOG_ERROR, "%s=%s: invalid value; valid values: a number from %" PRIu64 " to %" PRIu64 " (%s)", setting->variable,
		       text, setting->min, setting->max, setting->help);
		return -EINVAL;
	}
	*value = number;
	return 0;
}

const char *hr_setting_origin(const struct hr_setting *setting)
{
	return from_environment(setting) ? "environment" : "default";
}

size_t hr_setting_list(const struct hr_setting *const **first)
{
	*first = __start_hr_settings;
	return (size_t)(__stop_hr_settings - __start_hr_settings);
}
