/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the sections versions and transports. */
#include "config.h"

#include "bench/info/info.h"
#include "headrace/channel.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The optional parts, and whether configure found them. */
static const struct {
	const char *name;
	bool there;
} parts[] = {
#ifdef HAVE_IBVERBS
	{ "verbs", true },
#else
	{ "verbs", false },
#endif
#ifdef HAVE_PMIX
	{ "pmix", true },
#else
	{ "pmix", false },
#endif
#ifdef HAVE_CUDA
	{ "cuda", true },
#else
	{ "cuda", false },
#endif
#ifdef HAVE_ZSTD
	{ "zstd", true },
#else
	{ "zstd", false },
#endif
#ifdef HAVE_LZ4
	{ "lz4", true },
#else
	{ "lz4", false },
#endif
#ifdef HAVE_SODIUM
	{ "sodium", true },
#else
	{ "sodium", false },
#endif
#if defined HAVE_MUNGE && defined HAVE_SODIUM
	{ "munge", true },
#else
	{ "munge", false },
#endif
#ifdef HAVE_SECCOMP
	{ "seccomp", true },
#else
	{ "seccomp", false },
#endif
};

static void print_parts(const char *title, bool there)
{
	const char *separator = "";
	printf("  %-14s ", title);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (parts[i].there != there)
			continue;
		printf("%s%s", separator, parts[i].name);
		separator = ", ";
	}
	puts(*separator ? "" : "-");
}

void info_versions(void)
{
	puts("Versions");
	printf("  %-14s %s\n", "headrace", PACKAGE_VERSION);
	printf("  %-14s %s\n", "channel", hr_channel_version());
	print_parts("built with", true);
	print_parts("built without", false);
}

/* Opens a channel on one transport, to see whether that works. Its log is dropped (stderr is redirected), as a missing
 * transport is not an error here. */
static int try_transport(uint32_t transport, size_t *conn_bytes)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_channel_t *channel;
	hr_card_t card;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(STDERR_FILENO);
	attr.transports = transport;
	if (null >= 0 && saved >= 0)
		dup2(null, STDERR_FILENO);
	int error = hr_channel_init(&attr, &channel, &card);
	*conn_bytes = error ? 0 : hr_channel_conn_bytes(channel, transport);
	if (!error)
		hr_channel_finalize(channel);
	if (saved >= 0) {
		dup2(saved, STDERR_FILENO);
		close(saved);
	}
	if (null >= 0)
		close(null);
	return error;
}

void info_transports(void)
{
	static const struct {
		const char *name, *what;
		uint32_t bit;
	} transports[] = {
		{ "shm", "processes of one host", HR_TRANSPORT_SHM },
		{ "verbs", "InfiniBand, RoCE", HR_TRANSPORT_VERBS },
		{ "tcp", "any network", HR_TRANSPORT_TCP },
	};
	puts("Transports");
	for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
		size_t bytes;
		int error = try_transport(transports[i].bit, &bytes);
		printf("  %-6s %-4s %s", transports[i].name, error ? "no" : "yes", transports[i].what);
		if (error)
			printf(" (%s)", strerror(-error));
		else if (bytes) /* with the ring size of the settings; without buffers whose size the kernel chooses */
			printf("; a connection takes %zu KB", (bytes + 1023) / 1024);
		puts("");
	}
}
