/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of devices: how many, which are visible, their identity. The calls on them are in device_calls.c. */
#include "cuda_remote/softgpu/driver/device/device.h"

#include "cuda_remote/softgpu/space/space.h"
#include "rdma_channel/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct {
	int count;
	int physical[SOFTGPU_MAX_DEVICES]; /* of each visible one */
	unsigned capability;
	CUuuid uuid;                       /* of the first; the last byte counts up */
} devices;

static uint64_t hash_text(uint64_t hash, const char *text)
{
	/* FNV-1a, 64 bits. */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* The same in every process of a machine, different on every machine. */
static void make_uuid(CUuuid *uuid)
{
	char text[256] = "";
	FILE *file = fopen("/etc/machine-id", "r");
	if (file) {
		if (!fgets(text, sizeof text, file))
			text[0] = '\0';
		fclose(file);
	}
	uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), text);
	if (!gethostname(text, sizeof text - 1))
		hash = hash_text(hash, text);
	memcpy(uuid->bytes, "headrac", 7);
	memcpy(uuid->bytes + 7, &hash, sizeof hash);
	uuid->bytes[15] = 0;
}

static void format_uuid(const CUuuid *uuid, char text[41])
{
	char *at = text + sprintf(text, "GPU-");
	for (int i = 0; i < 16; i++)
		at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			      (unsigned char)uuid->bytes[i]);
}

/* Parses one entry of CUDA_VISIBLE_DEVICES: an index, or the unique start of a UUID. Returns -1 for anything else. */
static int parse_visible(const char *entry, size_t length, int machine_count)
{
	if (!length)
		return -1;
	if (!strncmp(entry, "GPU-", length < 4 ? length : 4)) {
		int found = -1;
		for (int i = 0; i < machine_count; i++) {
			CUuuid uuid = devices.uuid;
			char text[41];
			uuid.bytes[15] = (char)i;
			format_uuid(&uuid, text);
			if (length > 40 || strncasecmp(entry, text, length))
				continue;
			if (found >= 0)
				return -1;
			found = i;
		}
		return found;
	}
	char *end;
	long index = strtol(entry, &end, 10);
	return end == entry + length && index >= 0 && index < machine_count ? (int)index : -1;
}

/*
 * As in the CUDA programming guide: the list ends at its first invalid entry; if a device is named twice, no device is
 * visible.
 */
static void apply_visible(const char *list, int machine_count)
{
	bool seen[SOFTGPU_MAX_DEVICES] = { false };
	for (;;) {
		size_t length = strcspn(list, ",");
		int index = parse_visible(list, length, machine_count);
		if (index < 0)
			return;
		if (seen[index]) {
			hr_log(HR_LOG_WARN, "CUDA_VISIBLE_DEVICES: device %d is named twice, so no device is visible",
			       index);
			devices.count = 0;
			return;
		}
		seen[index] = true;
		devices.physical[devices.count++] = index;
		if (!list[length])
			return;
		list += length + 1;
	}
}

CUresult device_open(void)
{
	struct device_settings settings;
	CUresult result = device_settings_read(&settings);
	if (result != CUDA_SUCCESS)
		return result;
	make_uuid(&devices.uuid);
	devices.capability = settings.capability;
	devices.count = 0;
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (visible) {
		apply_visible(visible, settings.count);
	} else {
		for (int i = 0; i < settings.count; i++)
			devices.physical[i] = i;
		devices.count = settings.count;
	}
	if (!devices.count)
		return CUDA_ERROR_NO_DEVICE;
	if (!settings.memory || softgpu_space_open((unsigned)settings.count, settings.memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int device_count(void)
{
	return devices.count;
}

bool device_valid(CUdevice device)
{
	return device >= 0 && device < devices.count;
}

int device_physical(CUdevice device)
{
	return devices.physical[device];
}

CUuuid device_uuid(CUdevice device)
{
	CUuuid uuid = devices.uuid;
	uuid.bytes[15] = (char)devices.physical[device];
	return uuid;
}

unsigned device_capability(void)
{
	return devices.capability;
}
