/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shared code of managed memory asks for (cuda_remote/managed/managed.h). */
#include "cuda_remote/managed/managed.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/space/space.h"

_Static_assert(SOFTGPU_MAX_DEVICES <= MANAGED_DEVICES, "advice names any device");

bool managed_driver_find(CUdeviceptr address, managed_memory_t *found)
{
	softgpu_allocation_t allocation;
	if (!softgpu_space_find(address, &allocation) || allocation.kind != SOFTGPU_SPACE_MANAGED)
		return false;
	*found = (managed_memory_t){ allocation.base, allocation.size, allocation.id };
	return true;
}

/* There is one memory, which everybody sees at all times. */
void managed_driver_attach(const managed_memory_t *memory, unsigned flags)
{
	(void)memory;
	(void)flags;
}

bool managed_driver_device(CUdevice device)
{
	return device_valid(device);
}
