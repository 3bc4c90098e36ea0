/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registering a user's memory with an adapter: the one seam between the registration cache and verbs, so that the cache
 * is tested without an adapter by a test that brings these two functions itself.
 */
#ifndef IB_REGISTER_H
#define IB_REGISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_device;

/* What registered memory is for, as a set. */
enum {
	IB_USE_SEND = 1u << 0,         /* the peer may read it */
	IB_USE_RECEIVE = 1u << 1,      /* our own RDMA reads may write it */
	IB_USE_REMOTE_WRITE = 1u << 2, /* the peer may write it; needs IB_USE_RECEIVE */
};

struct ib_registration {
	uint32_t lkey, rkey;
	void *handle; /* the adapter's */
};

/* Registers len bytes at address, both multiples of the page size, with a protection domain of the device. -ENOMEM,
 * -EPERM, -EFAULT and others as ibv_reg_mr says them; logs nothing. */
int ib_register(struct ib_device *device, uintptr_t address, size_t len, unsigned uses,
		struct ib_registration *registration);
void ib_deregister(struct ib_registration *registration);

/* Does registered memory stay this process's own when it forks? Linux does that by itself since 5.12 (pinned pages are
 * copied for the child at once); before, a write after the fork would move the page away from under the adapter, unless
 * the program had called ibv_fork_init. */
bool ib_register_survives_fork(void);

#endif
