/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of a channel's RDMA device: its port went down, its LID, GID or partition key changed, the device
 * or a queue pair died. Connections that cannot go on fail with a line in the log that says why, once for each event:
 * those without traffic would else never learn of it. A port that is up again can be used for new connections if it has
 * the address that the card names.
 */
#ifndef IB_EVENTS_H
#define IB_EVENTS_H

#include "ib/ib_device.h"

/* Makes the device's event descriptor non-blocking. */
int ib_events_open(struct ib_device *device);
/* Takes the events that are there and acts on them. One system call when there are none. */
void ib_events_take(struct ib_device *device);

#endif
