/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens a library that has a static CUDA runtime, and calls its function, which doubles a number: after dlopen, after dlclose and a second dlopen, and from
 * another thread. The library calls CUDA in a constructor.
 *
 *	opens LIBRARY FUNCTION
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int use(char **names)
{
	int (*doubled)(int);
	void *library = dlopen(names[0], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&doubled = dlsym(library, names[1]);
	int result = doubled ? doubled(21) : -1;
	dlclose(library);
	return result;
}

static void *use_in_thread(void *names)
{
	static int result;
	result = use(names);
	return &result;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *result = NULL;
	if (argc != 3)
		return 2;
	for (int i = 0; i < 2; i++)
		if (use(argv + 1) != 42)
			return printf("use %d fails\n", i), 1;
	if (pthread_create(&thread, NULL, use_in_thread, argv + 1) || pthread_join(thread, &result) || *(int *)result != 42)
		return printf("the use in a thread fails\n"), 1;
	return 0;
}
