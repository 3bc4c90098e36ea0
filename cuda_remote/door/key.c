/* SPDX-License-Identifier: BSD-3-Clause */
/* Key files: one line, "headrace-key-1 " and 64 hexadecimal digits. */
#include "cuda_remote/door/proof.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_LABEL "headrace-key-1 "
#define KEY_TEXT (sizeof KEY_LABEL - 1 + 2 * RC_DOOR_KEY_BYTES)

int door_random(void *bytes, size_t size)
{
	uint8_t *at = bytes;
	while (size) {
		ssize_t n = getrandom(at, size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = -errno;
			hr_log(HR_LOG_ERROR, "getrandom: %s", strerror(errno));
			return error;
		}
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

void door_forget(void *secret, size_t size)
{
	explicit_bzero(secret, size);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool key_parse(const char *text, size_t length, rc_door_key_t *key)
{
	const char *hex = text + sizeof KEY_LABEL - 1;
	if (length < KEY_TEXT || memcmp(text, KEY_LABEL, sizeof KEY_LABEL - 1))
		return false;
	if (length > KEY_TEXT && text[KEY_TEXT] != '\n')
		return false;
	for (size_t i = 0; i < RC_DOOR_KEY_BYTES; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		key->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* Refuses a key file that other users could read or change. */
static int key_check_owner(const char *path, int fd)
{
	struct stat status;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode)) {
		hr_log(HR_LOG_ERROR, "key file %s: not a regular file", path);
		return -EINVAL;
	}
	if (status.st_mode & 077) {
		hr_log(HR_LOG_ERROR, "key file %s: its mode is %04o, so others could read or change it: chmod 600 it",
		       path, (unsigned)status.st_mode & 07777);
		return -EPERM;
	}
	if (status.st_uid != geteuid() && status.st_uid != 0) {
		hr_log(HR_LOG_ERROR, "key file %s: belongs to user %u, neither this user nor root", path,
		       (unsigned)status.st_uid);
		return -EPERM;
	}
	return 0;
}

static int key_support(const char *path)
{
	if (rc_door_keys_supported())
		return 0;
	hr_log(HR_LOG_ERROR, "key file %s: this build of Headrace has no key support (configured without libsodium)",
	       path);
	return -ENOTSUP;
}

int rc_door_key_load(const char *path, rc_door_key_t *key)
{
	int error = key_support(path);
	if (error)
		return error;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		error = -errno;
		hr_log(HR_LOG_ERROR, "key file %s: %s", path, strerror(errno));
		return error;
	}
	char text[KEY_TEXT + 1];
	rc_door_key_t parsed;
	error = key_check_owner(path, fd);
	if (!error) {
		ssize_t n = read(fd, text, sizeof text);
		error = n < 0 ? -errno : key_parse(text, (size_t)n, &parsed) ? 0 : -EINVAL;
		if (error)
			hr_log(HR_LOG_ERROR, "key file %s: not a key that headraced --make-key wrote", path);
	}
	close(fd);
	if (!error)
		*key = parsed;
	door_forget(text, sizeof text);
	door_forget(&parsed, sizeof parsed);
	return error;
}

int rc_door_key_make(const char *path)
{
	rc_door_key_t key;
	char text[KEY_TEXT + 2] = KEY_LABEL;
	int error = key_support(path);
	if (!error)
		error = door_random(key.bytes, sizeof key.bytes);
	if (error)
		return error;
	for (size_t i = 0; i < sizeof key.bytes; i++)
		snprintf(text + sizeof KEY_LABEL - 1 + 2 * i, 3, "%02x", key.bytes[i]);
	text[KEY_TEXT] = '\n';
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, KEY_TEXT + 1) != (ssize_t)(KEY_TEXT + 1) || fsync(fd)) {
		error = errno ? -errno : -EIO;
		hr_log(HR_LOG_ERROR, "cannot write key file %s: %s", path, strerror(-error));
		if (fd >= 0)
			unlink(path);
	}
	if (fd >= 0)
		close(fd);
	door_forget(text, sizeof text);
	door_forget(&key, sizeof key);
	return error;
}
