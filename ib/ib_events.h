/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of a channel's RDMA device: the port went down; its LID, GID or partition key changed; the device
 * or a queue pair failed. The affected connections fail, and each event is logged once with its cause. Without these
 * events a connection without traffic would never detect the failure. If the port is up again with the address that is
 * in the card, new connections can use it.
 */
#ifndef IB_EVENTS_H
#define IB_EVENTS_H

#include "ib/ib_device.h"

/* Makes the device's event descriptor non-blocking. */
int ib_events_open(struct ib_device *device);
/* Takes and handles all events. Makes one system call if there are none. */
void ib_events_take(struct ib_device *device);

#endif
