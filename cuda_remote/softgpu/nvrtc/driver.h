/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver functions that the stand-ins need. The program's libcuda.so.1 is asked, whichever that is. */
#ifndef RC_NVRTC_DRIVER_H
#define RC_NVRTC_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* Types of cuda.h: handles are pointers, CUresult, CUdevice and the enums are ints. */
typedef struct standin_driver {
	int (*init)(unsigned flags);
	int (*current_device)(int *device);
	int (*device)(int *device, int index);
	int (*device_name)(char *name, int bytes, int device);
	int (*current_context)(void **context);
	int (*retain_primary)(void **context, int device);
	int (*release_primary)(int device);
	int (*push_context)(void *context);
	int (*pop_context)(void **context);
	int (*link_create)(unsigned count, int *options, void **values, void **link);
	int (*link_add)(void *link, int type, void *data, size_t size, const char *name, unsigned count, int *options,
			void **values);
	int (*link_complete)(void *link, void **image, size_t *size);
	int (*link_destroy)(void *link);
} standin_driver_t;

/* The driver, with all functions; NULL: the program has none. */
const standin_driver_t *standin_driver(void);

/* The device of the current context, or else the first one. False: there is none. */
bool standin_device(const standin_driver_t *driver, int *device);

/* True if that device is a software GPU, here or on a server. */
bool standin_is_software_gpu(void);

#endif
