/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers and deregisters memory with the adapter for the registration cache. */
#include "config.h"

#include "ib/ib_register.h"

#include "ib/ib_device.h"

#include <errno.h>

int ib_register(struct ib_device *device, uintptr_t address, size_t len, unsigned uses,
		struct ib_registration *registration)
{
	int access = (uses & IB_USE_SEND ? IBV_ACCESS_REMOTE_READ : 0) |
		     (uses & IB_USE_RECEIVE ? IBV_ACCESS_LOCAL_WRITE : 0) |
		     (uses & IB_USE_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
	errno = 0;
	struct ibv_mr *mr = ibv_reg_mr(device->pd, (void *)address, len, access);
	if (!mr)
		return errno ? -errno : -ENOMEM;
	*registration = (struct ib_registration){ mr->lkey, mr->rkey, mr };
	return 0;
}

void ib_deregister(struct ib_registration *registration)
{
	ibv_dereg_mr(registration->handle);
	registration->handle = NULL;
}

bool ib_register_survives_fork(void)
{
#ifdef HAVE_IBV_IS_FORK_INITIALIZED
	return ibv_is_fork_initialized() != IBV_FORK_DISABLED;
#else
	return false; /* this libibverbs has no call that says so */
#endif
}
