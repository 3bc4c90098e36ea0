/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of the devices with their defaults: how many, how much memory, which compute capability. */
#include "cuda_remote/softgpu/driver/device/device.h"

#include "cuda_remote/softgpu/space/space.h"
#include "rdma_channel/base/setting.h"

#include <unistd.h>

HR_SETTING(setting_devices, "HEADRACE_SOFTGPU_DEVICES", "1", 1, SOFTGPU_MAX_DEVICES, "software GPUs of this machine");
HR_SETTING(setting_memory, "HEADRACE_SOFTGPU_MEMORY", "0", 0, UINT64_C(1) << 44,
	   "memory of each software GPU, bytes; 0: half of this machine's, at most 8G");
HR_SETTING(setting_capability, "HEADRACE_SOFTGPU_CAPABILITY", "90", 50, 129,
	   "compute capability of the software GPUs, 10 * major + minor");

static uint64_t default_memory(void)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
	uint64_t most = UINT64_C(8) << 30;
	return half < most ? half : most;
}

CUresult device_settings_read(struct device_settings *settings)
{
	uint64_t count, memory, capability;
	if (hr_setting_u64(&setting_devices, &count) || hr_setting_u64(&setting_memory, &memory) ||
	    hr_setting_u64(&setting_capability, &capability))
		return CUDA_ERROR_INVALID_VALUE;
	settings->count = (int)count;
	settings->memory = (memory ? memory : default_memory()) & ~UINT64_C(4095);
	settings->capability = (unsigned)capability;
	return CUDA_SUCCESS;
}
