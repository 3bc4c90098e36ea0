/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events of the device: port and queue pair errors. */
#include "config.h"

#include "ib/ib_events.h"

#include "ib/ib_conn.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int ib_events_open(struct ib_device *device)
{
	int fd = device->verbs->async_fd;
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return 0;
	int error = errno;
	hr_log(HR_LOG_ERROR, "fcntl of the device's event descriptor: %s", strerror(error));
	return -error;
}

static void fail_all(struct ib_device *device)
{
	struct ib_conn *conn;
	LIST_FOREACH(conn, &device->conns, place)
		ib_conn_fail(conn, device->error);
}

/* Handles a change of the port: if the port has become unusable, all its connections fail; if it has become usable
 * again, new connections work. */
static void port_changed(struct ib_device *device, const char *event)
{
	const char *name = ibv_get_device_name(device->verbs->device);
	const char *why = ib_device_fault(device);
	if (why && !device->error) {
		hr_log(HR_LOG_ERROR, "verbs: %s port %u: %s (%s): all connections of this port are lost", name, device->port, why,
		       event);
		device->error = -ENETDOWN;
		fail_all(device);
	} else if (!why && device->error) {
		hr_log(HR_LOG_INFO, "verbs: %s port %u is usable again (%s)", name, device->port, event);
		device->error = 0;
	}
}

static struct ib_conn *conn_of(const struct ib_device *device, const struct ibv_async_event *event)
{
	bool of_cq = event->event_type == IBV_EVENT_CQ_ERR;
	struct ib_conn *conn;
	LIST_FOREACH(conn, &device->conns, place) {
		if (of_cq && conn->queues.cq == event->element.cq)
			return conn;
		for (unsigned i = 0; !of_cq && i < conn->queues.n; i++)
			if (conn->queues.queue[i].qp == event->element.qp)
				return conn;
	}
	return NULL;
}

/* Handles a failed queue pair or completion queue of one connection. The cause may be that the peer has just died; then
 * the stream shows it. */
static void conn_failed(struct ib_device *device, const struct ibv_async_event *event, int error)
{
	struct ib_conn *conn = conn_of(device, event);
	if (!conn || conn->error)
		return;
	if (conn->stream >= 0)
		ib_conn_check_stream(conn);
	if (conn->error)
		return;
	hr_log(HR_LOG_ERROR, "verbs: connection to %s: %s", conn->env->peer, ibv_event_type_str(event->event_type));
	ib_conn_fail(conn, error);
}

static void take(struct ib_device *device, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		device->dead = true;
		port_changed(device, ibv_event_type_str(event->event_type));
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		if (event->event_type == IBV_EVENT_GID_CHANGE || event->element.port_num == device->port)
			port_changed(device, ibv_event_type_str(event->event_type));
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
		conn_failed(device, event, -ECONNRESET);
		break;
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		conn_failed(device, event, -EPROTO);
		break;
	default: /* no connection depends on it, or it is about objects that this transport does not use */
		hr_log(HR_LOG_DEBUG, "verbs: %s", ibv_event_type_str(event->event_type));
		break;
	}
}

void ib_events_take(struct ib_device *device)
{
	struct ibv_async_event event;
	while (!ibv_get_async_event(device->verbs, &event)) {
		/* Acknowledge the event first: handling it may destroy its queue pair, and ibv_destroy_qp waits for the
		 * acknowledgement. Until then the queue pair exists, as only this thread destroys it. */
		ibv_ack_async_event(&event);
		take(device, &event);
	}
}
