/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads headraced.conf. */
#include "cuda_remote/server/daemon/config.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

static int read_stream(FILE *stream, char **text)
{
	char *bytes = malloc(CONFIG_BYTES_MAX + 1);
	if (!bytes)
		return -ENOMEM;
	errno = 0;
	size_t n = fread(bytes, 1, CONFIG_BYTES_MAX + 1, stream);
	int error = ferror(stream) ? (errno ? -errno : -EIO) : n > CONFIG_BYTES_MAX ? -EFBIG : 0;
	if (!error && memchr(bytes, 0, n))
		error = -EILSEQ;
	if (error) {
		free(bytes);
		return error;
	}
	bytes[n] = 0;
	*text = bytes;
	return 0;
}

int config_read(const char *file, char **text)
{
	FILE *stream = fopen(file, "re");
	int error = stream ? read_stream(stream, text) : -errno;
	if (stream)
		fclose(stream);
	if (error == -EILSEQ)
		hr_log(HR_LOG_ERROR, "%s: not a text file: it contains a byte 0; want lines NAME = VALUE", file);
	else if (error)
		hr_log(HR_LOG_ERROR, "cannot read %s: %s", file, strerror(-error));
	return error;
}

/* Cuts the blanks at both ends of a string. */
static char *trim(char *text)
{
	text += strspn(text, BLANKS);
	size_t n = strlen(text);
	while (n && strchr(BLANKS, text[n - 1]))
		n--;
	text[n] = 0;
	return text;
}

static int split(char *text, struct config_line *line)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text) {
		hr_log(HR_LOG_ERROR, "%s:%u: \"%s\": want NAME = VALUE, or # and a comment", line->file, line->number, text);
		return -EINVAL;
	}
	*equals = 0;
	line->name = trim(text);
	line->value = trim(equals + 1);
	return 0;
}

int config_parse(const char *file, char *text, int (*take)(void *context, const struct config_line *line),
		 void *context)
{
	struct config_line line = { .file = file };
	int error = 0;
	for (char *next = text; next && !error;) {
		char *at = next;
		next = strchr(at, '\n');
		if (next)
			*next++ = 0;
		line.number++;
		at = trim(at);
		if (!*at || *at == '#')
			continue;
		error = split(at, &line);
		if (!error)
			error = take(context, &line);
	}
	return error;
}
