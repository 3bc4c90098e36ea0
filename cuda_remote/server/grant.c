/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The grant: the GPUs that the session may use. CUDA_VISIBLE_DEVICES hides the others before the driver is initialised.
 * A worker that was prepared with all GPUs releases the others before it reads the first byte from its client.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entry of a CUDA_VISIBLE_DEVICES list with this index. NULL: the list is shorter. */
static const char *list_entry(const char *list, uint32_t index, size_t *length)
{
	while (index-- && (list = strchr(list, ',')))
		list++;
	if (list)
		*length = strcspn(list, ",");
	return list && *length ? list : NULL;
}

int server_grant_hide(uint32_t gpu)
{
	char only[128];
	size_t length;
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	if (gpu == RC_SERVER_ALL_GPUS)
		return 0;
	/* If CUDA_VISIBLE_DEVICES already limits the daemon, the index counts in that list. */
	const char *entry = list ? list_entry(list, gpu, &length) : NULL;
	if (list && (!entry || length >= sizeof only)) {
		hr_log(HR_LOG_ERROR, "no GPU %u in CUDA_VISIBLE_DEVICES=%s", gpu, list);
		return -ENODEV;
	}
	if (entry)
		snprintf(only, sizeof only, "%.*s", (int)length, entry);
	else
		snprintf(only, sizeof only, "%u", gpu);
	return setenv("CUDA_VISIBLE_DEVICES", only, 1) ? -errno : 0;
}

/* Releases a device: marks the slots pinned in its primary context, releases the context. */
static void release(uint32_t i)
{
	server_slots_forget(server_slots_end(worker.primary[i]));
	if (driver.cuDevicePrimaryCtxRelease_v2)
		driver.cuDevicePrimaryCtxRelease_v2(worker.device[i]);
}

int server_grant_narrow(uint32_t gpu)
{
	if (gpu == worker.grant)
		return 0;
	if (worker.grant != RC_SERVER_ALL_GPUS || gpu >= worker.gpus) {
		hr_log(HR_LOG_ERROR, "GPU %u is granted to the session, and this worker does not have it", gpu);
		return -ENODEV;
	}
	CUresult result = driver.cuCtxSetCurrent(worker.primary[gpu]);
	if (result != CUDA_SUCCESS) {
		hr_log(HR_LOG_ERROR, "cuCtxSetCurrent, GPU %u: %s", gpu, server_error_name(result));
		return -EIO;
	}
	for (uint32_t i = 0; i < worker.gpus; i++)
		if (i != gpu)
			release(i);
	worker.device[0] = worker.device[gpu];
	worker.primary[0] = worker.primary[gpu];
	worker.gpus = 1;
	worker.grant = gpu;
	return 0;
}

CUresult server_device(uint32_t number, CUdevice *device)
{
	if (number >= worker.gpus)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = worker.device[number];
	return CUDA_SUCCESS;
}
