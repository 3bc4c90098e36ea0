/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel's settings with their defaults. Completes the attributes of hr_channel_init from them and checks them. */
#include "rdma_channel/impl.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

HR_SETTING(transport_setting, "HEADRACE_TRANSPORT", "", 0, 0, "transports to use, e.g. shm,verbs,tcp; empty: all");
HR_SETTING(timeout_setting, "HEADRACE_TIMEOUT_MS", "10000", 10, 86400000,
	   "time until a peer that does not answer has failed, ms");
HR_SETTING(spin_setting, "HEADRACE_SPIN_US", "50", 0, 10000000,
	   "maximum spin before sleeping, us; connections whose waits last longer do not spin");
HR_SETTING(pending_setting, "HEADRACE_PENDING_MAX", "4096", 16, 1u << 20,
	   "maximum number of unanswered incoming connections, 1 KB each");
HR_SETTING(ring_setting, "HEADRACE_RING_BYTES", "1M", 16384, 1u << 30, "receive ring of each connection, bytes");

static uint32_t transport_named(const char *name, size_t len)
{
	for (const struct hr_transport *const *t = hr_transports; *t; t++)
		if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len))
			return (*t)->bit;
	return 0;
}

static uint32_t all_transports(void)
{
	uint32_t set = 0;
	for (const struct hr_transport *const *t = hr_transports; *t; t++)
		set |= (*t)->bit;
	return set;
}

const char *hr_transport_names(uint32_t set, char *text, size_t size)
{
	size_t used = 0;
	*text = '\0';
	for (const struct hr_transport *const *t = hr_transports; *t && used < size; t++)
		if (set & (*t)->bit)
			used += (size_t)snprintf(text + used, size - used, " %s", (*t)->name);
	return text;
}

/* Parses a comma-separated list of transports. */
static int parse_transports(const char *text, uint32_t *transports)
{
	char names[64];
	uint32_t set = 0;
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ",");
		uint32_t bit = transport_named(at, len);
		if (!bit) {
			hr_log(HR_LOG_ERROR, "HEADRACE_TRANSPORT=%s: this build has no transport \"%.*s\"; valid transports:%s",
			       text, (int)len, at, hr_transport_names(all_transports(), names, sizeof names));
			return -EINVAL;
		}
		set |= bit;
		at += len;
		at += *at == ',';
	}
	*transports = set;
	return 0;
}

static int read_settings(hr_channel_attr_t *attr, uint64_t *spin_us, uint64_t *pending_max, bool *ring_is_default)
{
	uint64_t value;
	*ring_is_default = !attr->ring_bytes && !strcmp(hr_setting_origin(&ring_setting), "default");
	int error = hr_setting_u64(&spin_setting, spin_us);
	if (!error && !attr->timeout_ms) {
		error = hr_setting_u64(&timeout_setting, &value);
		if (!error)
			attr->timeout_ms = (uint32_t)value;
	}
	if (!error && !attr->ring_bytes) {
		error = hr_setting_u64(&ring_setting, &value);
		if (!error)
			attr->ring_bytes = (uint32_t)value;
	}
	if (!error && !attr->transports)
		error = parse_transports(hr_setting_text(&transport_setting), &attr->transports);
	if (!error && !attr->transports)
		attr->transports = all_transports();
	if (!error)
		error = hr_setting_u64(&pending_setting, pending_max);
	return error;
}

static int check_attr(const hr_channel_attr_t *attr)
{
	const char *wrong = NULL;
	if (attr->transports & ~(uint32_t)(HR_TRANSPORT_SHM | HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP))
		wrong = "transports";
	else if (attr->flags & ~(uint32_t)(HR_CHANNEL_NO_LISTEN | HR_CHANNEL_PATIENT | HR_CHANNEL_SLEEPS))
		wrong = "flags";
	else if (attr->ring_bytes < ring_setting.min || attr->ring_bytes > ring_setting.max)
		wrong = "ring_bytes";
	else if (attr->timeout_ms < timeout_setting.min || attr->timeout_ms > timeout_setting.max)
		wrong = "timeout_ms";
	else if (attr->verbs_design > HR_VERBS_ZEROCOPY)
		wrong = "verbs_design";
	else if (attr->reserved)
		wrong = "reserved";
	if (!wrong)
		return 0;
	hr_log(HR_LOG_ERROR, "hr_channel_init: attribute %s is out of range", wrong);
	return -EINVAL;
}

int hr_channel_gather_attr(const hr_channel_attr_t *given, hr_channel_attr_t *attr, uint64_t *spin_us,
			   uint64_t *pending_max, bool *ring_is_default)
{
	*attr = (hr_channel_attr_t)HR_CHANNEL_ATTR_INIT;
	if (given) {
		if (given->size < sizeof attr->size + sizeof attr->transports || given->size > sizeof *attr) {
			hr_log(HR_LOG_ERROR, "hr_channel_init: attr->size is %zu; use HR_CHANNEL_ATTR_INIT",
			       given->size);
			return -EINVAL;
		}
		memcpy(attr, given, given->size);
	}
	int error = read_settings(attr, spin_us, pending_max, ring_is_default);
	return error ? error : check_attr(attr);
}
