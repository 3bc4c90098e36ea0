/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded object. Each new thread sleeps for 300 ms before it does anything. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_late(void *argument)
{
	struct start start = *(struct start *)argument;
	free(argument);
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	return start.function(start.argument);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
							  void *(*function)(void *), void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *start = malloc(sizeof *start);
	if (!start)
		return 11; /* EAGAIN */
	*start = (struct start){ function, argument };
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	int error = real(thread, attributes, start_late, start);
	if (error)
		free(start);
	return error;
}
