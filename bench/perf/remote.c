/* SPDX-License-Identifier: BSD-3-Clause */
/* The control connection of a measurement between two hosts: listening, connecting, passing on the command line. */
#include "config.h"
#include "remote.h"

#include "endpoint.h"
#include "headrace/channel.h"
#include "measure.h"
#include "wake.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAGIC "HRPERF1\n"
#define ARGUMENTS_MAX 64
#define TEXT_MAX 4096   /* bytes of all arguments, each with its NUL */
#define GREETING_S 10   /* a client that connects and sends no command line is dropped after this time */

/* Sent by the connecting side; `len` bytes of arguments follow, each ends in a NUL. The answer is the same structure
 * with len 0, so that two different versions detect each other. */
struct greeting {
	char magic[8];
	char version[24]; /* of the sender */
	uint32_t len;
};

static void set_greeting(struct greeting *greeting, uint32_t len)
{
	memset(greeting, 0, sizeof *greeting);
	memcpy(greeting->magic, MAGIC, sizeof greeting->magic);
	snprintf(greeting->version, sizeof greeting->version, "%s", PACKAGE_VERSION);
	greeting->len = len;
}

/* Splits "HOST", "HOST:PORT" or "[ADDRESS]:PORT" in place; *port keeps its value if the text has no port. */
static char *split_place(char *text, const char **port)
{
	char *colon = strrchr(text, ':');
	if (*text == '[') {
		char *end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return NULL;
		if (end[1])
			*port = end + 2;
		*end = '\0';
		return text + 1;
	}
	/* More than one colon: an IPv6 address without a port. */
	if (colon && strchr(text, ':') == colon) {
		*port = colon + 1;
		*colon = '\0';
	}
	return text;
}

static struct addrinfo *resolve(const char *place, bool passive)
{
	char text[256];
	const char *port = REMOTE_PORT;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0 }, *list;
	if (strlen(place) >= sizeof text) {
		fprintf(stderr, "headrace-perf: %s: host name too long\n", place);
		return NULL;
	}
	strcpy(text, place);
	char *host = split_place(text, &port);
	if (!host || (!*host && !passive)) {
		fprintf(stderr, "headrace-perf: %s: invalid; valid: HOST, HOST:PORT, [ADDRESS]:PORT\n", place);
		return NULL;
	}
	int error = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	if (error) {
		fprintf(stderr, "headrace-perf: %s: %s\n", place, gai_strerror(error));
		return NULL;
	}
	return list;
}

/* Sends small messages at once, and makes the kernel detect a lost peer host, which ends the measurement. */
static void tune(int fd)
{
	int on = 1, idle = 5, count = 4;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static bool version_agrees(const struct greeting *greeting, const char *who)
{
	if (!memcmp(greeting->magic, MAGIC, sizeof greeting->magic) &&
	    memchr(greeting->version, '\0', sizeof greeting->version) && !strcmp(greeting->version, PACKAGE_VERSION))
		return true;
	fprintf(stderr, "headrace-perf: the %s is not headrace-perf %s\n", who, PACKAGE_VERSION);
	return false;
}

/* ---- the listening side ---- */

static int open_listener(const char *place)
{
	struct addrinfo *list = resolve(place, true);
	int fd = -1, error = 0, on = 1;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 8)) {
			error = errno;
			if (fd >= 0)
				close(fd);
			fd = -1;
		}
	}
	if (list)
		freeaddrinfo(list);
	if (list && fd < 0)
		fprintf(stderr, "headrace-perf: cannot listen on %s: %s\n", *place ? place : "port " REMOTE_PORT,
			strerror(error));
	return fd;
}

/* Reads the client's arguments into text and points argv at them; the caller has set argv[0]. Returns the number of
 * arguments, argv[0] included, or -1. */
static int read_arguments(int control, char text[TEXT_MAX], char *argv[ARGUMENTS_MAX])
{
	struct greeting greeting, answer;
	int argc = 1;
	control_read(control, &greeting, sizeof greeting);
	set_greeting(&answer, 0);
	control_write(control, &answer, sizeof answer);
	if (!version_agrees(&greeting, "client"))
		return -1;
	if (greeting.len > TEXT_MAX || !greeting.len)
		return -1;
	control_read(control, text, greeting.len);
	if (text[greeting.len - 1])
		return -1;
	for (char *at = text; at < text + greeting.len; at += strlen(at) + 1) {
		if (argc == ARGUMENTS_MAX - 1)
			return -1;
		argv[argc++] = at;
	}
	argv[argc] = NULL;
	return argc;
}

/* Runs rank 1 of one measurement, in a child process. */
static int serve(int control)
{
	static char text[TEXT_MAX];
	char *argv[ARGUMENTS_MAX] = { (char *)"headrace-perf" };
	struct options options;
	struct timeval limit = { .tv_sec = GREETING_S }, none = { 0 };
	tune(control);
	setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	int argc = read_arguments(control, text, argv);
	setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
	if (argc < 0) {
		fprintf(stderr, "headrace-perf: refused a client: invalid request\n");
		return -1;
	}
	options_parse(&options, argc, argv);
	if (options.listen || options.connect || options.test > TEST_WAKE) {
		fprintf(stderr, "headrace-perf: refused a client: not a test between two hosts\n");
		return -1;
	}
	options.control = control;
	options.rank = 1;
	return options.test == TEST_WAKE ? measure_wake(&options) : measure_messages(&options);
}

int remote_listen(const struct options *options)
{
	int listener = open_listener(options->listen);
	if (listener < 0)
		return -1;
	printf("headrace-perf: listening on %s\n", *options->listen ? options->listen : "port " REMOTE_PORT);
	fflush(stdout);
	for (;;) {
		int control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (control < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			fprintf(stderr, "headrace-perf: accept: %s\n", strerror(errno));
			return -1;
		}
		/* One measurement at a time: two at the same time would disturb each other. */
		pid_t child = fork();
		if (child == 0) {
			close(listener);
			exit(serve(control) ? EXIT_FAILURE : EXIT_SUCCESS);
		}
		if (child < 0)
			fprintf(stderr, "headrace-perf: fork: %s\n", strerror(errno));
		close(control);
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* ---- the connecting side ---- */

static int dial(const char *place)
{
	struct addrinfo *list = resolve(place, false);
	int fd = -1, error = 0;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			break;
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (list)
		freeaddrinfo(list);
	if (list && fd < 0)
		fprintf(stderr, "headrace-perf: cannot connect to %s: %s; start `headrace-perf --listen` there\n", place,
			strerror(error));
	return fd;
}

/* Packs the arguments into text, without --connect and its value. Returns their length; 0: they are too long. */
static uint32_t pack_arguments(int argc, char **argv, char text[TEXT_MAX])
{
	uint32_t len = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--connect")) {
			i++;
			continue;
		}
		if (!strncmp(argv[i], "--connect=", 10))
			continue;
		size_t bytes = strlen(argv[i]) + 1;
		if (bytes > TEXT_MAX - len)
			return 0;
		memcpy(text + len, argv[i], bytes);
		len += (uint32_t)bytes;
	}
	return len;
}

int remote_connect(const struct options *options, int argc, char **argv)
{
	static char text[TEXT_MAX];
	struct greeting greeting, answer;
	uint32_t len = pack_arguments(argc, argv, text);
	if (!len) {
		fprintf(stderr, "headrace-perf: the command line is longer than %d bytes\n", TEXT_MAX);
		return -1;
	}
	int control = dial(options->connect);
	if (control < 0)
		return -1;
	tune(control);
	set_greeting(&greeting, len);
	control_write(control, &greeting, sizeof greeting);
	control_read(control, &answer, sizeof answer);
	if (!version_agrees(&answer, "server")) {
		close(control);
		return -1;
	}
	control_write(control, text, len);
	return control;
}

/* ---- both sides ---- */

static bool same_address(int control)
{
	struct sockaddr_storage own, peer;
	socklen_t own_len = sizeof own, peer_len = sizeof peer;
	char a[NI_MAXHOST], b[NI_MAXHOST];
	return !getsockname(control, (struct sockaddr *)&own, &own_len) &&
	       !getpeername(control, (struct sockaddr *)&peer, &peer_len) &&
	       !getnameinfo((struct sockaddr *)&own, own_len, a, sizeof a, NULL, 0, NI_NUMERICHOST) &&
	       !getnameinfo((struct sockaddr *)&peer, peer_len, b, sizeof b, NULL, 0, NI_NUMERICHOST) && !strcmp(a, b);
}

uint32_t remote_transports(int control)
{
	static const uint32_t all[] = { HR_TRANSPORT_SHM, HR_TRANSPORT_VERBS, HR_TRANSPORT_TCP };
	hr_channel_t *channel;
	hr_card_t card;
	uint32_t mine = 0, theirs;
	if (!hr_channel_init(NULL, &channel, &card)) {
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			mine |= hr_channel_conn_bytes(channel, all[i]) ? all[i] : 0;
		hr_channel_finalize(channel);
	}
	if (!same_address(control))
		mine &= ~(uint32_t)HR_TRANSPORT_SHM;
	control_write(control, &mine, sizeof mine);
	control_read(control, &theirs, sizeof theirs);
	return mine & theirs;
}
