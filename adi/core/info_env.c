/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_INFO_ENV and MPI_Info_create_env. */
#include "adi/core/info_env.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct adi_info env;
static int known_size, known_level = -1;

static const struct {
	int level;
	const char *name;
} levels[] = {
	{ MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE" },
	{ MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED" },
	{ MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED" },
	{ MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE" },
};
#define LEVELS (sizeof levels / sizeof *levels)

const char *adi_thread_level_name(int level)
{
	for (size_t i = 0; i < LEVELS; i++)
		if (levels[i].level == level)
			return levels[i].name;
	return NULL;
}

int adi_thread_level_named(const char *name)
{
	for (size_t i = 0; i < LEVELS; i++)
		if (!strcmp(levels[i].name, name))
			return levels[i].level;
	return -1;
}

/* Keys whose value is too long for MPI are left out. */
static void put(struct adi_info *info, const char *key, const char *value)
{
	if (value && strlen(value) < MPI_MAX_INFO_VAL)
		adi_info_put(info, key, value);
}

/* Stores the words with a blank between them. */
static void put_words(struct adi_info *info, int argc, char **argv)
{
	char line[MPI_MAX_INFO_VAL] = "";
	size_t used = 0;
	for (int i = 0; i < argc && argv[i] && used < sizeof line; i++)
		used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", i ? " " : "", argv[i]);
	if (used < sizeof line)
		put(info, "argv", line);
}

/* Command and arguments of this process, from the kernel. */
static void put_own_command(struct adi_info *info)
{
	char text[4096], *argv[128];
	int argc = 0, fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	for (ssize_t at = 0; at < n && argc < 128; at += (ssize_t)strlen(text + at) + 1)
		argv[argc++] = text + at;
	put(info, "command", argv[0]);
	put_words(info, argc - 1, argv + 1);
}

static void put_job(struct adi_info *info)
{
	char number[16];
	if (known_size) {
		snprintf(number, sizeof number, "%d", known_size);
		put(info, "maxprocs", number);
	}
	if (known_level >= 0)
		put(info, "thread_level", adi_thread_level_name(known_level));
}

static void put_machine(struct adi_info *info)
{
	char name[MPI_MAX_PROCESSOR_NAME], path[PATH_MAX];
	struct utsname machine;
	if (!gethostname(name, sizeof name))
		put(info, "host", name);
	if (uname(&machine) >= 0)
		put(info, "arch", machine.machine);
	if (getcwd(path, sizeof path))
		put(info, "wdir", path);
}

static void describe(struct adi_info *info, int argc, char **argv)
{
	if (argc > 0 && argv && argv[0]) {
		put(info, "command", argv[0]);
		put_words(info, argc - 1, argv + 1);
	} else {
		put_own_command(info);
	}
	put_machine(info);
}

struct adi_info *adi_info_describe(int argc, char **argv)
{
	struct adi_info *info = adi_info_new();
	if (info)
		describe(info, argc, argv);
	return info;
}

struct adi_info *adi_info_env(void)
{
	if (!env.object.magic) {
		adi_object_predefine(&env.object, ADI_INFO, (uintptr_t)MPI_INFO_ENV);
		describe(&env, 0, NULL);
		put_job(&env);
	}
	return &env;
}

void adi_info_env_job(int size, int thread_level)
{
	known_size = size;
	known_level = thread_level;
	if (env.object.magic)
		put_job(&env);
}
