/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers the user's memory with an adapter. The registration cache uses verbs only through these functions, so a
 * test can replace them and test the cache without an adapter.
 */
#ifndef IB_REGISTER_H
#define IB_REGISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_device;

/* Uses of registered memory; a set. */
enum {
	IB_USE_SEND = 1u << 0,         /* the peer may read it */
	IB_USE_RECEIVE = 1u << 1,      /* RDMA reads of this side may write it */
	IB_USE_REMOTE_WRITE = 1u << 2, /* the peer may write it; needs IB_USE_RECEIVE */
};

struct ib_registration {
	uint32_t lkey, rkey;
	void *handle; /* struct ibv_mr */
};

/* Registers len bytes at address, both multiples of the page size, in the device's protection domain. Returns
 * ibv_reg_mr's error as a negated errno value (-ENOMEM, -EPERM, -EFAULT, ...). Logs nothing. */
int ib_register(struct ib_device *device, uintptr_t address, size_t len, unsigned uses,
		struct ib_registration *registration);
void ib_deregister(struct ib_registration *registration);

/* Returns whether registrations stay valid when the process forks. Since Linux 5.12 they do: the kernel copies pinned
 * pages for the child at once. Before, a write after the fork gave the process a new page while the adapter kept the
 * old page, unless the program had called ibv_fork_init. */
bool ib_register_survives_fork(void);

#endif
