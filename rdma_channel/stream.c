/* SPDX-License-Identifier: BSD-3-Clause */
/* Wake-ups, orderly close and detection of a dead peer on the set-up socket. */
#include "rdma_channel/stream.h"

#include <errno.h>
#include <sys/socket.h>

enum {
	STREAM_WAKE = 'w',
	STREAM_GOODBYE = 'g',
	/* The most wake-ups that one call takes. A correct peer sends one wake-up per arming, so it never sends so many
	 * between two calls. */
	STREAM_WAKES_MAX = 1 << 22,
};

static int meaning_of(const unsigned char *bytes, ssize_t n, bool *woken)
{
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == STREAM_GOODBYE)
			return -ESHUTDOWN;
		if (bytes[i] != STREAM_WAKE)
			return -EPROTO;
		*woken = true;
	}
	return 0;
}

int hr_stream_take(int stream, bool *woken)
{
	for (ssize_t taken = 0; taken < STREAM_WAKES_MAX;) {
		unsigned char bytes[256];
		ssize_t n = recv(stream, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN || errno == EWOULDBLOCK)
				return 0;
			return errno == ETIMEDOUT || errno == EHOSTUNREACH ? -ETIMEDOUT : -ECONNRESET;
		}
		int error = meaning_of(bytes, n, woken);
		if (error)
			return error;
		taken += n;
	}
	return -EPROTO;
}

int hr_stream_check(int stream)
{
	bool woken;
	return hr_stream_take(stream, &woken);
}

static void send_byte(int stream, unsigned char byte)
{
	while (send(stream, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue;
}

void hr_stream_wake(int stream)
{
	send_byte(stream, STREAM_WAKE);
}

void hr_stream_goodbye(int stream)
{
	send_byte(stream, STREAM_GOODBYE);
}
