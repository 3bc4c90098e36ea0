/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of single GPUs. */
#include "cuda_remote/server/daemon/gpus.h"

#include "cuda_remote/door/server_name.h"
#include "cuda_remote/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(GPUS_MAX == RC_DEVICES_MAX, "struct gpu_settings");

/* Takes "INDEX:" off the text. *first and *end: the GPUs that the value is for. */
static int take_index(const char **text, uint32_t *first, uint32_t *end)
{
	const char *colon = strchr(*text, ':');
	char *stop;
	*first = 0;
	*end = GPUS_MAX;
	if (!colon)
		return 0;
	unsigned long index = isdigit((unsigned char)**text) ? strtoul(*text, &stop, 10) : GPUS_MAX;
	if (index >= GPUS_MAX || stop != colon)
		return -EINVAL;
	*first = (uint32_t)index;
	*end = *first + 1;
	*text = colon + 1;
	return 0;
}

int gpus_set_mode(struct gpu_settings *settings, const char *text, const char **want)
{
	uint32_t first, end;
	bool valid = !take_index(&text, &first, &end), exclusive = valid && !strcmp(text, "exclusive");
	*want = "want exclusive or shared, or INDEX:exclusive or INDEX:shared with the index of a GPU from 0 to 63";
	if (!valid || (!exclusive && strcmp(text, "shared") != 0))
		return -EINVAL;
	for (uint32_t i = first; i < end; i++)
		settings->exclusive[i] = exclusive;
	return 0;
}

static int parse_bytes(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "kMGT";
	char *end;
	if (!strcmp(text, "none")) {
		*bytes = 0;
		return 0;
	}
	errno = 0;
	unsigned long long value = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
	if (!value || errno)
		return -EINVAL;
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	if ((*end && (!suffix || end[1])) || value > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes = value << shift;
	return 0;
}

int gpus_set_memory(struct gpu_settings *settings, const char *text, const char **want)
{
	uint32_t first, end;
	uint64_t bytes;
	*want = "want BYTES, or INDEX:BYTES with the index of a GPU from 0 to 63; k, M, G and T are powers "
		"of 1024; none: no quota";
	if (take_index(&text, &first, &end) || parse_bytes(text, &bytes))
		return -EINVAL;
	for (uint32_t i = first; i < end; i++)
		settings->memory[i] = bytes;
	return 0;
}

int gpus_conflict(const struct gpu_settings *settings, uint32_t gpus, uint32_t wanted, uint32_t taken)
{
	for (uint32_t i = 0; i < gpus && i < GPUS_MAX; i++)
		if (settings->exclusive[i] && (wanted == i || wanted == RC_SERVER_ALL_GPUS) &&
		    (taken == i || taken == RC_SERVER_ALL_GPUS))
			return (int)i;
	return -1;
}
