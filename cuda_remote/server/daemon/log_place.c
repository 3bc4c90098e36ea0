/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the log's place as descriptor 2. */
#include "cuda_remote/server/daemon/log_place.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define JOURNAL "/run/systemd/journal/stdout"

/* The first lines of a stream to the journal, as sd_journal_stream_fd(3) sends them: identifier; unit, none; default
 * priority (LOG_INFO); lines may begin with "<N>"; do not forward to syslog, kernel log and console. */
static const char journal_head[] = "headraced\n\n6\n1\n0\n0\n0\n";

int log_place_check(const char *place)
{
	return !strcmp(place, "stderr") || !strcmp(place, "journal") || *place == '/' ? 0 : -EINVAL;
}

void log_place_note(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	char own[64];
	if (!stream || fstat(STDERR_FILENO, &status))
		return;
	snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
	hr_log_set_priorities(!strcmp(stream, own));
}

static int open_journal(int *out)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) ||
	    write(fd, journal_head, sizeof journal_head - 1) != (ssize_t)sizeof journal_head - 1) {
		int error = errno ? -errno : -EIO;
		close(fd);
		return error;
	}
	*out = fd;
	return 0;
}

/* Tells log_place_note, also that of the workers, that standard error is the journal's. */
static void mark_journal(void)
{
	struct stat status;
	char own[64];
	if (fstat(STDERR_FILENO, &status))
		return;
	snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
	setenv("JOURNAL_STREAM", own, 1);
}

int log_place_open(const char *place)
{
	bool journal = !strcmp(place, "journal");
	int fd = -1, error = 0;
	if (!strcmp(place, "stderr"))
		return 0;
	if (journal)
		error = open_journal(&fd);
	else if ((fd = open(place, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640)) < 0)
		error = -errno;
	if (!error && dup2(fd, STDERR_FILENO) < 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	if (error) {
		hr_log(HR_LOG_ERROR, "cannot log to %s: %s", journal ? "the journal (" JOURNAL ")" : place, strerror(-error));
		return error;
	}
	if (journal)
		mark_journal();
	log_place_note();
	return 0;
}
