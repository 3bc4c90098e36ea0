/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses requests and writes the heads of answers. */
#define _GNU_SOURCE /* memmem */
#include "cuda_remote/server/daemon/metrics_http.h"

#include <stdio.h>
#include <string.h>

/* True if the bytes begin with the word, which ends with its NUL. */
static bool starts(const char *bytes, size_t len, const char *word)
{
	return len >= strlen(word) && !memcmp(bytes, word, strlen(word));
}

static bool is_complete(const char *bytes, size_t len)
{
	return memmem(bytes, len, "\r\n\r\n", 4) || memmem(bytes, len, "\n\n", 2);
}

/* The page that the target names; a query after it does not count. */
static bool is_metrics(const char *target, size_t len)
{
	const char *query = memchr(target, '?', len);
	size_t n = query ? (size_t)(query - target) : len;
	return n == strlen("/metrics") && !memcmp(target, "/metrics", n);
}

/* line: the request's line without its end. */
static enum metrics_request judge_line(const char *line, size_t len)
{
	const char *target = memchr(line, ' ', len);
	const char *version = target ? memchr(target + 1, ' ', len - (size_t)(target + 1 - line)) : NULL;
	if (!version || target == line || version == target + 1)
		return METRICS_MALFORMED;
	size_t rest = len - (size_t)(version + 1 - line);
	if (rest != strlen("HTTP/1.1") || !starts(version + 1, rest, "HTTP/1."))
		return METRICS_MALFORMED;
	size_t method = (size_t)(target - line);
	bool get = method == 3 && starts(line, len, "GET"), head = method == 4 && starts(line, len, "HEAD");
	if (!get && !head)
		return METRICS_WRONG_METHOD;
	if (!is_metrics(target + 1, (size_t)(version - target - 1)))
		return METRICS_NOT_FOUND;
	return get ? METRICS_GET : METRICS_HEAD;
}

enum metrics_request metrics_http_judge(const char *bytes, size_t len)
{
	if (memchr(bytes, 0, len))
		return METRICS_MALFORMED;
	if (!is_complete(bytes, len))
		return len >= METRICS_REQUEST_MAX ? METRICS_TOO_LONG : METRICS_INCOMPLETE;
	size_t line = (size_t)((const char *)memchr(bytes, '\n', len) - bytes);
	if (line && bytes[line - 1] == '\r')
		line--;
	return judge_line(bytes, line);
}

size_t metrics_http_head(enum metrics_request request, bool unavailable, size_t length, char text[METRICS_HEAD_MAX])
{
	static const struct {
		const char *status, *body;
	} answers[] = {
		[METRICS_NOT_FOUND] = { "404 Not Found", "The counters are at /metrics.\n" },
		[METRICS_WRONG_METHOD] = { "405 Method Not Allowed", "Use GET.\n" },
		[METRICS_MALFORMED] = { "400 Bad Request", "This is no HTTP request.\n" },
		[METRICS_TOO_LONG] = { "431 Request Header Fields Too Large", "The request is too long.\n" },
	};
	const char *status = "200 OK", *body = "", *type = "text/plain; version=0.0.4; charset=utf-8";
	if (request != METRICS_GET && request != METRICS_HEAD) {
		status = answers[request].status;
		body = answers[request].body;
		type = "text/plain; charset=utf-8";
		length = strlen(body);
	} else if (unavailable) {
		status = "503 Service Unavailable";
		body = request == METRICS_GET ? "The daemon does not answer.\n" : "";
		length = strlen(body);
	}
	return (size_t)snprintf(text, METRICS_HEAD_MAX,
				"HTTP/1.1 %s\r\nContent-Type: %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
				type, request == METRICS_WRONG_METHOD ? "Allow: GET, HEAD\r\n" : "", length, body);
}
