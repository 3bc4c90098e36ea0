/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of HTTP/1.1 (RFC 9112) that a server of one page needs: the request's line and the end of its head. */
#ifndef RC_DAEMON_METRICS_HTTP_H
#define RC_DAEMON_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define METRICS_REQUEST_MAX 4096 /* bytes of a request's head */

enum metrics_request {
	METRICS_INCOMPLETE,   /* more bytes must come */
	METRICS_GET,          /* GET /metrics */
	METRICS_HEAD,         /* HEAD /metrics */
	METRICS_NOT_FOUND,    /* another page */
	METRICS_WRONG_METHOD,
	METRICS_MALFORMED,
	METRICS_TOO_LONG,
};

/* Judges the bytes of a request so far. */
enum metrics_request metrics_http_judge(const char *bytes, size_t len);

/* Writes the head of an answer, and if the request is not GET or HEAD also its body, a line. length: of the body of GET or
 * HEAD; unavailable: the body is not there (503). Returns the length of the text; it fits METRICS_HEAD_MAX. */
#define METRICS_HEAD_MAX 512
size_t metrics_http_head(enum metrics_request request, bool unavailable, size_t length, char text[METRICS_HEAD_MAX]);

#endif
