/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a message path: the channel, ch3, or a raw TCP socket as the floor. */
#include "config.h"
#include "endpoint.h"

#include "ch3/ch3.h"
#include "headrace/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PERF_PACKET CH3_TYPE_FIRST

struct endpoint {
	enum layer layer;
	bool sleeps;
	hr_channel_t *channel;
	hr_conn_t *conn;
	ch3_t *engine;
	ch3_vc_t *vc;
	int socket;
	/* ch3: the buffer for the next message; how many messages have arrived, and how many were taken. */
	void *sink;
	size_t sink_len;
	uint64_t arrived, taken;
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "headrace-perf: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

void control_write(int fd, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)bytes + done, len - done);
		if (n <= 0)
			fail("control socket", n ? errno : EPIPE);
		done += (size_t)n;
	}
}

void control_read(int fd, void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, (char *)bytes + done, len - done);
		if (n <= 0)
			fail("the other process ended early", n ? errno : EPIPE);
		done += (size_t)n;
	}
}

void control_check(int fd)
{
	char byte;
	if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		fail("the other process ended early", EPIPE);
}

static hr_card_t swap_cards(const hr_card_t *mine, int control)
{
	hr_card_t theirs;
	control_write(control, mine, sizeof *mine);
	control_read(control, &theirs, sizeof theirs);
	return theirs;
}

static void open_channel(endpoint_t *ep, const hr_channel_attr_t *attr, int control)
{
	hr_card_t mine = { 0 };
	int error = hr_channel_init(attr, &ep->channel, &mine);
	if (error)
		fail("hr_channel_init", error);
	hr_card_t theirs = swap_cards(&mine, control);
	error = hr_channel_connect(ep->channel, &theirs, NULL, &ep->conn);
	if (error)
		fail("hr_channel_connect", error);
	while (!(error = hr_conn_state(ep->conn)))
		hr_channel_wait(ep->channel, 0, 10);
	if (error < 0)
		fail("connecting", error);
}

/* Called by ch3 when the whole payload has been received. */
static void message_done(void *context, int error, size_t bytes)
{
	endpoint_t *ep = context;
	(void)bytes;
	if (error)
		fail("receiving", error);
	ep->arrived++;
}

static int message_arrives(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	endpoint_t *ep = context;
	if (incoming->payload_len > ep->sink_len)
		return -EPROTO;
	sink->iov[0] = (struct iovec){ ep->sink, ep->sink_len };
	sink->n = 1;
	sink->done = message_done;
	sink->context = ep;
	return 0;
}

static void open_ch3(endpoint_t *ep, const hr_channel_attr_t *attr, int control)
{
	hr_card_t mine = { 0 };
	int error = ch3_open(attr, &ep->engine, &mine);
	if (!error)
		error = ch3_register(ep->engine, PERF_PACKET, message_arrives, ep);
	if (error)
		fail("ch3_open", error);
	hr_card_t theirs = swap_cards(&mine, control);
	error = ch3_connect(ep->engine, &theirs, NULL, NULL, &ep->vc);
	if (error)
		fail("ch3_connect", error);
	while (!(error = ch3_vc_state(ep->vc)))
		ch3_progress_wait(ep->engine, 10);
	if (error < 0)
		fail("connecting", error);
	ep->conn = ch3_vc_conn(ep->vc);
}

/* Returns the address by which the peer process reaches this process: loopback if both run on this host. */
static struct sockaddr_storage own_address(int control)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof address;
	if (getsockname(control, (struct sockaddr *)&address, &len))
		fail("control socket", errno);
	if (address.ss_family == AF_INET6) {
		((struct sockaddr_in6 *)&address)->sin6_port = 0;
	} else if (address.ss_family == AF_INET) {
		((struct sockaddr_in *)&address)->sin_port = 0;
	} else {
		memset(&address, 0, sizeof address);
		*(struct sockaddr_in *)&address = (struct sockaddr_in){ .sin_family = AF_INET,
									.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	}
	return address;
}

/* A stream within a host is not paced, as the channel's are not (rdma_channel/pacing.h). */
static void unpace(int fd, int control)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof domain;
	if (getsockopt(control, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* Both processes listen on a port that the kernel chooses; the process with the lower address connects. */
static void open_tcp(endpoint_t *ep, int control)
{
	struct sockaddr_storage mine = own_address(control), theirs;
	socklen_t len = sizeof mine;
	int listener = socket(mine.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	len = mine.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	unpace(listener, control);
	if (listener < 0 || bind(listener, (struct sockaddr *)&mine, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&mine, &len))
		fail("raw TCP listener", errno);
	control_write(control, &mine, sizeof mine);
	control_read(control, &theirs, sizeof theirs);
	if (memcmp(&mine, &theirs, len) < 0) {
		ep->socket = socket(theirs.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		unpace(ep->socket, control);
		if (connect(ep->socket, (struct sockaddr *)&theirs, len))
			fail("raw TCP connect", errno);
	} else {
		ep->socket = accept(listener, NULL, NULL);
	}
	if (ep->socket < 0)
		fail("raw TCP", errno);
	close(listener);
	int on = 1;
	setsockopt(ep->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

endpoint_t *endpoint_open(const struct variant *variant, int control)
{
	endpoint_t *ep = calloc(1, sizeof *ep);
	if (!ep)
		fail("endpoint", ENOMEM);
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = variant->transports;
	attr.verbs_design = variant->design;
	ep->layer = variant->layer;
	ep->sleeps = variant->sleeps;
	ep->socket = -1;
	variant_settings(variant);
	switch (ep->layer) {
	case LAYER_CHANNEL: open_channel(ep, &attr, control); break;
	case LAYER_CH3: open_ch3(ep, &attr, control); break;
	case LAYER_RAW_TCP: open_tcp(ep, control); break;
	}
	return ep;
}

void endpoint_close(endpoint_t *ep)
{
	switch (ep->layer) {
	case LAYER_CHANNEL: hr_channel_finalize(ep->channel); break;
	case LAYER_CH3: ch3_close(ep->engine); break;
	case LAYER_RAW_TCP: close(ep->socket); break;
	}
	free(ep);
}

/* Sleeps after a put or get that moved nothing, if the variant asks for that. */
static void channel_idle(endpoint_t *ep, int want_put)
{
	if (!ep->sleeps)
		return;
	int error = hr_channel_wait(ep->channel, want_put, -1);
	if (error < 0 && error != -EINTR)
		fail("hr_channel_wait", error);
}

static void ch3_step(endpoint_t *ep)
{
	if (ep->sleeps)
		ch3_progress_wait(ep->engine, -1);
	else
		ch3_progress_poll(ep->engine);
}

static void channel_send(endpoint_t *ep, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)bytes, len };
	while (rest.iov_len) {
		size_t accepted;
		int error = hr_channel_put(ep->conn, &rest, 1, &accepted);
		if (error)
			fail("hr_channel_put", error);
		if (!accepted)
			channel_idle(ep, 1);
		rest.iov_base = (char *)rest.iov_base + accepted;
		rest.iov_len -= accepted;
	}
}

/* Removes the bytes that were accepted or delivered from the vector. Returns the number of buffers that are left. */
static unsigned advance(struct iovec *iov, unsigned n, size_t bytes)
{
	unsigned done = 0;
	while (done < n && bytes >= iov[done].iov_len)
		bytes -= iov[done++].iov_len;
	memmove(iov, iov + done, (n - done) * sizeof *iov);
	if (done < n) {
		iov->iov_base = (char *)iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
	return n - done;
}

static void channel_send_many(endpoint_t *ep, const void *bytes, size_t len, unsigned count, unsigned ahead)
{
	struct iovec iov[ENDPOINT_AHEAD_MAX];
	unsigned n = 0;
	while (n || count) {
		/* A message that is accepted at once is put alone: in a vector it would share its record with others. */
		for (unsigned most = n ? ahead : 1; n < most && count; count--)
			iov[n++] = (struct iovec){ (void *)bytes, len };
		size_t accepted;
		int error = hr_channel_put(ep->conn, iov, (int)n, &accepted);
		if (error)
			fail("hr_channel_put", error);
		if (!accepted)
			channel_idle(ep, 1);
		n = advance(iov, n, accepted);
	}
}

static void channel_receive(endpoint_t *ep, void *bytes, size_t len)
{
	struct iovec room = { bytes, len };
	while (room.iov_len) {
		size_t delivered;
		int error = hr_channel_get(ep->conn, &room, 1, &delivered);
		if (error)
			fail("hr_channel_get", error);
		if (!delivered)
			channel_idle(ep, 0);
		room.iov_base = (char *)room.iov_base + delivered;
		room.iov_len -= delivered;
	}
}

static void channel_receive_many(endpoint_t *ep, void *bytes, size_t len, unsigned count, unsigned ahead)
{
	struct iovec iov[ENDPOINT_AHEAD_MAX];
	unsigned n = 0;
	while (n || count) {
		for (; n < ahead && count; count--)
			iov[n++] = (struct iovec){ bytes, len };
		size_t delivered;
		int error = hr_channel_get(ep->conn, iov, (int)n, &delivered);
		if (error)
			fail("hr_channel_get", error);
		if (!delivered)
			channel_idle(ep, 0);
		n = advance(iov, n, delivered);
	}
}

/* Returns the request, or NULL if the message was sent at once. */
static ch3_request_t *ch3_start(endpoint_t *ep, const void *bytes, size_t len)
{
	struct iovec piece = { (void *)bytes, len };
	ch3_request_t *request;
	int error = ch3_send(ep->vc, PERF_PACKET, NULL, 0, &piece, 1, 0, &request);
	if (error)
		fail("ch3_send", error);
	return request;
}

static void ch3_end(endpoint_t *ep, ch3_request_t *request)
{
	if (!request)
		return;
	while (!ch3_request_test(request))
		ch3_step(ep);
	if (ch3_request_error(request))
		fail("ch3_send", ch3_request_error(request));
	ch3_request_free(request);
}

static void ch3_send_many(endpoint_t *ep, const void *bytes, size_t len, unsigned count, unsigned ahead)
{
	ch3_request_t *request[ENDPOINT_AHEAD_MAX] = { NULL };
	for (unsigned i = 0; i < count; i++) {
		ch3_end(ep, request[i % ahead]);
		request[i % ahead] = ch3_start(ep, bytes, len);
	}
	for (unsigned i = count; i < count + ahead; i++)
		ch3_end(ep, request[i % ahead]);
}

static void tcp_receive(int fd, void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, (char *)bytes + done, len - done, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			fail("raw TCP receive", n ? errno : EPIPE);
		if (n > 0)
			done += (size_t)n;
	}
}

static void tcp_send(int fd, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)bytes + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			fail("raw TCP send", errno);
		if (n > 0)
			done += (size_t)n;
	}
}

void endpoint_send(endpoint_t *ep, const void *bytes, size_t len)
{
	switch (ep->layer) {
	case LAYER_CHANNEL: channel_send(ep, bytes, len); break;
	case LAYER_CH3: ch3_end(ep, ch3_start(ep, bytes, len)); break;
	case LAYER_RAW_TCP: tcp_send(ep->socket, bytes, len); break;
	}
}

void endpoint_send_many(endpoint_t *ep, const void *bytes, size_t len, unsigned count, unsigned ahead)
{
	if (len < HR_ZERO_COPY_MIN)
		ahead = 1;
	switch (ep->layer) {
	case LAYER_CHANNEL: channel_send_many(ep, bytes, len, count, ahead); break;
	case LAYER_CH3: ch3_send_many(ep, bytes, len, count, ahead); break;
	case LAYER_RAW_TCP:
		for (; count; count--)
			tcp_send(ep->socket, bytes, len);
		break;
	}
}

void endpoint_receive(endpoint_t *ep, void *bytes, size_t len)
{
	switch (ep->layer) {
	case LAYER_CHANNEL:
		channel_receive(ep, bytes, len);
		break;
	case LAYER_CH3:
		ep->sink = bytes;
		ep->sink_len = len;
		while (ep->arrived == ep->taken)
			ch3_step(ep);
		ep->taken++;
		break;
	case LAYER_RAW_TCP:
		tcp_receive(ep->socket, bytes, len);
		break;
	}
}

void endpoint_receive_many(endpoint_t *ep, void *bytes, size_t len, unsigned count, unsigned ahead)
{
	if (ep->layer == LAYER_CHANNEL) {
		channel_receive_many(ep, bytes, len, count, len < HR_ZERO_COPY_MIN ? 1 : ahead);
		return;
	}
	for (; count; count--)
		endpoint_receive(ep, bytes, len);
}

void endpoint_poll(endpoint_t *ep)
{
	char byte;
	struct iovec room = { &byte, 1 };
	size_t delivered = 0;
	int error = 0;
	if (ep->layer == LAYER_CH3)
		ch3_progress_poll(ep->engine);
	else if (ep->layer == LAYER_CHANNEL)
		error = hr_channel_get(ep->conn, &room, 1, &delivered);
	if (error || delivered)
		fail("hr_channel_get between two samples", error ? error : EPROTO);
}

void endpoint_post(endpoint_t *ep, void *bytes, size_t len)
{
	ep->sink = bytes;
	ep->sink_len = len;
}

const char *endpoint_transport(const endpoint_t *ep)
{
	return ep->layer == LAYER_RAW_TCP ? "tcp" : hr_conn_transport(ep->conn);
}
