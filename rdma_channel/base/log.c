/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines on standard error, filtered by HEADRACE_LOG. */
#include "rdma_channel/base/log.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(level_setting, "HEADRACE_LOG", "error", 0, 0, "log level on standard error: error, warn, info, debug");

static const char *const level_names[] = { "error", "warn", "info", "debug" };

/* -1 until HEADRACE_LOG has been read. Racing threads compute the same value, so relaxed order suffices. */
static int log_level = -1;

static int level_from_environment(void)
{
	const char *text = hr_setting_text(&level_setting);
	for (int i = 0; i <= HR_LOG_DEBUG; i++)
		if (!strcmp(text, level_names[i]))
			return i;
	dprintf(STDERR_FILENO, "headrace[%d] error: HEADRACE_LOG=%s: want error, warn, info or debug; using error\n",
		(int)getpid(), text);
	return HR_LOG_ERROR;
}

bool hr_log_enabled(enum hr_log_level level)
{
	int limit = __atomic_load_n(&log_level, __ATOMIC_RELAXED);
	if (limit < 0) {
		limit = level_from_environment();
		__atomic_store_n(&log_level, limit, __ATOMIC_RELAXED);
	}
	return (int)level <= limit;
}

static int log_fd = STDERR_FILENO;

void hr_log_set_fd(int fd)
{
	log_fd = fd;
}

static bool priorities;

void hr_log_set_priorities(bool on)
{
	priorities = on;
}

/* LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG */
static const char *const priority_prefix[] = { "<3>", "<4>", "<6>", "<7>" };

static void (*log_tap)(enum hr_log_level level, const char *text, size_t length);

void hr_log_set_tap(void (*tap)(enum hr_log_level level, const char *text, size_t length))
{
	log_tap = tap;
}

/*
 * Replaces each control character by '?'. A message may quote text from a peer: a control character in it could end the
 * line and begin a forged one, or control the terminal that shows the log. A newline at the end of the message stays.
 */
static void remove_controls(char *text, size_t length)
{
	if (length > 0 && text[length - 1] == '\n')
		length--;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

void hr_log(enum hr_log_level level, const char *format, ...)
{
	bool tapped = log_tap && level <= HR_LOG_WARN, printed = hr_log_enabled(level);
	if (!printed && !tapped)
		return;
	int saved_errno = errno;
	char line[1024];
	int used = snprintf(line, sizeof line, "%sheadrace[%d] %s: ", priorities ? priority_prefix[level] : "",
			    (int)getpid(), level_names[level]);
	va_list args;
	va_start(args, format);
	int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
	va_end(args);
	size_t len = strlen(line);
	remove_controls(line + used, len - (size_t)used);
	if (tapped)
		log_tap(level, line + used, len - (size_t)used);
	if (more >= 0 && len > 0 && line[len - 1] != '\n')
		line[len++] = '\n';
	if (printed && write(log_fd, line, len) < 0) {
		/* There is no way to report this failure. */
	}
	errno = saved_errno;
}
