/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's log for programs (cuLogs…). The messages come from unsupported functions, which log their first call,
 * and, in larger numbers, from a file that cannot be written.
 */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

struct heard {
	unsigned count;
	CUlogLevel level;
	char last[256];
	CUlogsCallbackHandle own; /* to unregister from inside */
};

static void hear(void *data, CUlogLevel level, char *message, size_t length)
{
	struct heard *heard = data;
	heard->count++;
	heard->level = level;
	CHECK(strlen(message) == length);
	snprintf(heard->last, sizeof heard->last, "%s", message);
	if (heard->own)
		OK(cuLogsUnregisterCallback(heard->own));
}

static const char *const first_line = "warning: cuDeviceGetLuid is not supported\n";

/* Three different messages, each logged once in the process. */
static void say_first(void)
{
	char luid[8];
	unsigned mask;
	EXPECT(cuDeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_SUPPORTED);
}

static void say_second(void)
{
	EXPECT(cuCheckpointProcessUnlock(1, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void say_third(void)
{
	EXPECT(cuCheckpointProcessLock(1, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void callbacks_hear_each_message_until_they_are_removed(void)
{
	struct heard one = { 0 }, two = { 0 };
	CUlogsCallbackHandle first, second;
	OK(cuLogsRegisterCallback(hear, &one, &first));
	OK(cuLogsRegisterCallback(hear, &two, &second));
	two.own = second;
	say_first();
	CHECK(one.count == 1 && one.level == CU_LOG_LEVEL_WARNING);
	CHECK(!strcmp(one.last, "cuDeviceGetLuid is not supported"));
	CHECK(two.count == 1); /* and removed itself */
	EXPECT(cuLogsUnregisterCallback(second), CUDA_ERROR_INVALID_VALUE);
	say_second();
	CHECK(one.count == 2 && two.count == 1);
	OK(cuLogsUnregisterCallback(first));
	say_third();
	CHECK(one.count == 2);
	EXPECT(cuLogsUnregisterCallback(first), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsRegisterCallback(NULL, NULL, &first), CUDA_ERROR_INVALID_VALUE);
}

static void messages_are_dumped_from_an_iterator_on(void)
{
	char text[1024];
	size_t size = sizeof text;
	CUlogIterator start, now, at;
	OK(cuLogsCurrent(&now, 0));
	OK(cuLogsDumpToMemory(NULL, text, &size, 0));
	CHECK(size == strlen(text) && !strncmp(text, first_line, strlen(first_line)));
	CHECK(strstr(text, "cuCheckpointProcessLock is not supported\n"));
	start = at = now - 1;
	size = sizeof text;
	OK(cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(!strcmp(text, "warning: cuCheckpointProcessLock is not supported\n") && at == now);
	/* There is nothing new. */
	size = sizeof text;
	OK(cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(size == 0 && !text[0] && at == now);
	/* Buffers with room for the last message and the notice; for the notice only; for nothing. */
	const char *both = "messages before these do not fit\nwarning: cuCheckpointProcessLock is not supported\n";
	size = strlen(both) + 1;
	OK(cuLogsDumpToMemory(NULL, text, &size, 0));
	CHECK(!strcmp(text, both) && size == strlen(both));
	size = strlen(both);
	EXPECT(cuLogsDumpToMemory(&start, text, &(size_t){ 8 }, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsDumpToMemory(NULL, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK(size == 0 && start == now - 1);
	size = 0;
	EXPECT(cuLogsDumpToMemory(NULL, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
	size = sizeof text;
	EXPECT(cuLogsDumpToMemory(NULL, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsDumpToMemory(NULL, text, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsDumpToMemory(NULL, text, &size, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsCurrent(&now, 1), CUDA_ERROR_INVALID_VALUE);
}

static void messages_are_dumped_into_a_file(void)
{
	char path[] = "/tmp/driver_logs.XXXXXX", text[1024];
	CUlogIterator at;
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	OK(cuLogsCurrent(&at, 0));
	at--;
	OK(cuLogsDumpToFile(&at, path, 0));
	ssize_t got = read(fd, text, sizeof text - 1);
	CHECK(got > 0);
	text[got] = '\0';
	CHECK(!strcmp(text, "warning: cuCheckpointProcessLock is not supported\n"));
	close(fd);
	unlink(path);
	EXPECT(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsDumpToFile(NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLogsDumpToFile(NULL, path, 1), CUDA_ERROR_INVALID_VALUE);
}

/* Each failure logs a message: the path does not exist. */
static void old_messages_go_and_that_is_told(void)
{
	char *text = malloc(25600 + 1), path[64];
	size_t size = 25600 + 1;
	CUlogIterator at;
	for (int i = 0; i < 600; i++) {
		snprintf(path, sizeof path, "/nowhere/number/%d", i);
		EXPECT(cuLogsDumpToFile(NULL, path, 0), CUDA_ERROR_INVALID_VALUE);
	}
	OK(cuLogsDumpToMemory(NULL, text, &size, 0));
	CHECK(size > 25000 && size <= 25600 && size == strlen(text));
	CHECK(!strncmp(text, "messages before these are lost\n", 31));
	CHECK(strstr(text, "/nowhere/number/599: ") && !strstr(text, "/nowhere/number/0: "));
	/* The next line after the notice is a whole message. */
	CHECK(!strncmp(strchr(text, '\n') + 1, "error: cuLogsDumpToFile: /nowhere/number/", 41));
	OK(cuLogsCurrent(&at, 0));
	at -= 2;
	size = 25601;
	OK(cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(!strncmp(text, "error: cuLogsDumpToFile: /nowhere/number/598", 44));
	free(text);
}

static struct heard counted[2];

static void count(void *data, CUlogLevel level, char *message, size_t length)
{
	(void)level, (void)message, (void)length;
	__atomic_add_fetch(&((struct heard *)data)->count, 1, __ATOMIC_RELAXED);
}

static void *fail_often(void *unused)
{
	for (int i = 0; i < 200; i++)
		EXPECT(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_INVALID_VALUE);
	return unused;
}

/* One callback stays registered and gets every message; the other gets none after it was unregistered. */
static void callbacks_come_and_go_while_others_log(void)
{
	pthread_t threads[2];
	CUlogsCallbackHandle stays, goes;
	OK(cuLogsRegisterCallback(count, &counted[0], &stays));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, fail_often, NULL));
	for (int i = 0; i < 100; i++) {
		OK(cuLogsRegisterCallback(count, &counted[1], &goes));
		OK(cuLogsUnregisterCallback(goes));
		unsigned then = __atomic_exchange_n(&counted[1].count, 0, __ATOMIC_RELAXED);
		(void)then;
		CHECK(!__atomic_load_n(&counted[1].count, __ATOMIC_RELAXED));
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(counted[0].count == 400 && !counted[1].count);
	OK(cuLogsUnregisterCallback(stays));
}

/* After a fork, AddressSanitizer's allocator can wait for a lock that another thread held. */
#ifndef __SANITIZE_ADDRESS__
static bool all_forked;

static void *fail_until_all_forked(void *unused)
{
	while (!__atomic_load_n(&all_forked, __ATOMIC_RELAXED))
		EXPECT(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_INVALID_VALUE);
	return unused;
}

/* Each child logs. It would wait without end for a lock that the other thread held at the fork. */
static void a_child_logs_after_fork(void)
{
	pthread_t thread;
	int status;
	CHECK(!pthread_create(&thread, NULL, fail_until_all_forked, NULL));
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (!child) {
			alarm(60);
			EXPECT(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_INVALID_VALUE);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	}
	__atomic_store_n(&all_forked, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
#endif

static struct slow {
	unsigned entered, leave, returned;
	CUlogsCallbackHandle handle;
} slow;

static void hear_slowly(void *data, CUlogLevel level, char *message, size_t length)
{
	(void)data, (void)level, (void)message, (void)length;
	if (__atomic_add_fetch(&slow.entered, 1, __ATOMIC_RELAXED) > 1)
		return;
	while (!__atomic_load_n(&slow.leave, __ATOMIC_RELAXED))
		usleep(1000);
}

static void *fail_once(void *unused)
{
	EXPECT(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0), CUDA_ERROR_INVALID_VALUE);
	return unused;
}

static void *unregister(void *unused)
{
	OK(cuLogsUnregisterCallback(slow.handle));
	__atomic_store_n(&slow.returned, 1, __ATOMIC_RELAXED);
	return unused;
}

/* A callback's data may be freed after it was unregistered. */
static void a_callback_is_left_before_it_is_unregistered(void)
{
	pthread_t logs, ends;
	OK(cuLogsRegisterCallback(hear_slowly, NULL, &slow.handle));
	CHECK(!pthread_create(&logs, NULL, fail_once, NULL));
	while (!__atomic_load_n(&slow.entered, __ATOMIC_RELAXED))
		usleep(1000);
	CHECK(!pthread_create(&ends, NULL, unregister, NULL));
	usleep(50000);
	CHECK(!__atomic_load_n(&slow.returned, __ATOMIC_RELAXED));
	fail_once(NULL);
	CHECK(__atomic_load_n(&slow.entered, __ATOMIC_RELAXED) == 1);
	__atomic_store_n(&slow.leave, 1, __ATOMIC_RELAXED);
	pthread_join(ends, NULL);
	pthread_join(logs, NULL);
}

static struct {
	unsigned inside;
	CUlogsCallbackHandle handles[2];
} pair;
static __thread int role = -1;

/* Each callback acts in one of the two threads only: it waits until the other callback runs too, and removes that one. */
static void remove_the_other(void *data, CUlogLevel level, char *message, size_t length)
{
	(void)level, (void)message, (void)length;
	int mine = *(const int *)data;
	if (mine != role)
		return;
	__atomic_add_fetch(&pair.inside, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&pair.inside, __ATOMIC_RELAXED) < 2)
		usleep(1000);
	OK(cuLogsUnregisterCallback(pair.handles[!mine]));
}

static void *fail_once_as(void *number)
{
	role = *(const int *)number;
	return fail_once(NULL);
}

static void two_callbacks_remove_each_other(void)
{
	static const int numbers[2] = { 0, 1 };
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		OK(cuLogsRegisterCallback(remove_the_other, (void *)(uintptr_t)&numbers[i], &pair.handles[i]));
	alarm(60);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, fail_once_as, (void *)(uintptr_t)&numbers[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	alarm(0);
	for (int i = 0; i < 2; i++)
		EXPECT(cuLogsUnregisterCallback(pair.handles[i]), CUDA_ERROR_INVALID_VALUE);
}

/* In the child no thread is in the callback, so to unregister it waits for nobody. */
static void a_child_unregisters_what_another_thread_runs(void)
{
	pthread_t logs;
	int status;
	slow = (struct slow){ 0 };
	OK(cuLogsRegisterCallback(hear_slowly, NULL, &slow.handle));
	CHECK(!pthread_create(&logs, NULL, fail_once, NULL));
	while (!__atomic_load_n(&slow.entered, __ATOMIC_RELAXED))
		usleep(1000);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(60);
		OK(cuLogsUnregisterCallback(slow.handle));
		EXPECT(cuLogsUnregisterCallback(slow.handle), CUDA_ERROR_INVALID_VALUE);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	__atomic_store_n(&slow.leave, 1, __ATOMIC_RELAXED);
	pthread_join(logs, NULL);
	OK(cuLogsUnregisterCallback(slow.handle));
}

int main(void)
{
	callbacks_hear_each_message_until_they_are_removed();
	messages_are_dumped_from_an_iterator_on();
	messages_are_dumped_into_a_file();
	setenv("HEADRACE_LOG", "error", 1);
	old_messages_go_and_that_is_told();
	callbacks_come_and_go_while_others_log();
	a_callback_is_left_before_it_is_unregistered();
	two_callbacks_remove_each_other();
#ifndef __SANITIZE_ADDRESS__
	a_child_logs_after_fork();
#endif
	a_child_unregisters_what_another_thread_runs();
	return 0;
}
