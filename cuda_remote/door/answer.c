/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers to a request: welcome, refusal, report. Sent by the daemon, or by the worker that got the request. */
#include "cuda_remote/door/door.h"
#include "cuda_remote/door/answer.h"
#include "cuda_remote/door/proof.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a message without blocking. The first messages on a new socket fit its buffer, so a short write means that the
 * peer has closed the connection. */
static int send_whole(int fd, const void *message, size_t size)
{
	ssize_t n = send(fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == (ssize_t)size)
		return 0;
	return n < 0 ? -errno : -EPIPE;
}

void door_refuse(int fd, const char *name, enum rc_door_reason reason, const char *text)
{
	struct door_refusal refusal = { .reason = reason };
	door_header_set(&refusal.header, DOOR_REFUSAL, sizeof refusal);
	snprintf(refusal.text, sizeof refusal.text, "%s", text);
	hr_log(HR_LOG_WARN, "%s refused: %s", name, text);
	/* An error is ignored: the peer may have closed the connection. */
	(void)send_whole(fd, &refusal, sizeof refusal);
	close(fd);
}

void rc_door_peer_refuse(const rc_door_peer_t *peer, enum rc_door_reason reason, const char *format, ...)
{
	char text[RC_DOOR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	door_refuse(peer->fd, peer->name, reason, text);
}

static void fill_entry(const rc_door_session_t *session, struct door_session *wire)
{
	*wire = (struct door_session){ .number = session->number, .age_us = session->age_us, .calls = session->calls,
				       .memory = session->memory, .cpu_us = session->cpu_us, .uid = session->uid, .gpu = session->gpu };
	memcpy(wire->program, session->program, sizeof wire->program);
	memcpy(wire->client, session->client, sizeof wire->client);
}

int rc_door_peer_report(const rc_door_peer_t *peer, const rc_door_report_t *report)
{
	struct {
		struct door_report head;
		struct door_session session[RC_DOOR_SESSIONS_MAX];
	} message = { .head = { .count = report->count, .hidden = report->hidden, .counters = report->counters } };
	if (report->count > RC_DOOR_SESSIONS_MAX)
		return -EINVAL;
	size_t size = sizeof message.head + report->count * sizeof *message.session;
	door_header_set(&message.head.header, DOOR_REPORT, size);
	for (uint32_t i = 0; i < report->count; i++)
		fill_entry(&report->session[i], &message.session[i]);
	if (peer->by_key || peer->by_munge) {
		uint8_t proof[RC_DOOR_KEY_BYTES];
		int error = door_message_proof(peer->seal, &message.head, size, proof);
		if (error)
			return error;
		memcpy(message.head.proof, proof, sizeof proof);
	}
	/* A new socket's buffer may be smaller than the largest report. */
	setsockopt(peer->fd, SOL_SOCKET, SO_SNDBUF, &(int){ 2 * (int)sizeof message }, sizeof(int));
	return send_whole(peer->fd, &message, size);
}

static int send_calls(const rc_door_peer_t *peer)
{
	struct door_calls message;
	door_calls_fill(&message);
	if (peer->by_key || peer->by_munge) {
		uint8_t proof[RC_DOOR_KEY_BYTES];
		int error = door_message_proof(peer->seal, &message, sizeof message, proof);
		if (error)
			return error;
		memcpy(message.proof, proof, sizeof proof);
	}
	return send_whole(peer->fd, &message, sizeof message);
}

int rc_door_peer_welcome(const rc_door_peer_t *peer, const hr_card_t *card, uint32_t gpus, uint32_t clients,
			  uint32_t workers, const char *text)
{
	struct door_welcome welcome = { .gpus = gpus, .clients = clients, .workers = workers };
	door_header_set(&welcome.header, DOOR_WELCOME, sizeof welcome);
	if (peer->purpose == RC_DOOR_NEW)
		memcpy(welcome.token, peer->token, sizeof welcome.token);
	if (card) {
		if (card->len > HR_CARD_MAX)
			return -EINVAL;
		welcome.card_len = card->len;
		memcpy(welcome.card, card->data, card->len);
	}
	snprintf(welcome.text, sizeof welcome.text, "%s", text);
	if (peer->by_key || peer->by_munge) {
		int error = door_welcome_proof(peer->seal, &welcome, welcome.proof);
		if (error)
			return error;
	}
	int flags = fcntl(peer->fd, F_GETFL);
	if (flags < 0 || fcntl(peer->fd, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	int error = send_whole(peer->fd, &welcome, sizeof welcome);
	return error || !peer->send_calls ? error : send_calls(peer);
}
