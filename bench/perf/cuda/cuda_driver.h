/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the CUDA driver, loaded as any CUDA program loads them. */
#ifndef PERF_CUDA_DRIVER_H
#define PERF_CUDA_DRIVER_H

#include <cuda.h>

struct cuda_driver {
	CUresult (*init)(unsigned);
	CUresult (*device_count)(int *);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUresult (*mem_get_info)(size_t *, size_t *);
	CUresult (*module_load)(CUmodule *, const void *);
	CUresult (*get_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
			   void **);
	CUresult (*synchronize)(void);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
	CUresult (*alloc_host)(void **, size_t);
	CUresult (*free_host)(void *);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t);
	CUresult (*from_device)(void *, CUdeviceptr, size_t);
	CUresult (*to_device_async)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*from_device_async)(void *, CUdeviceptr, size_t, CUstream);
	CUresult (*copy_3d)(const CUDA_MEMCPY3D *);
	CUresult (*copy_peer_async)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
	CUresult (*stream_create)(CUstream *, unsigned);
	CUresult (*stream_synchronize)(CUstream);
	CUresult (*event_create)(CUevent *, unsigned);
	CUresult (*event_record)(CUevent, CUstream);
	CUresult (*event_synchronize)(CUevent);
};

/* Loads the driver. Ends the program if it or one of its functions is missing. */
void cuda_driver_open(struct cuda_driver *driver);
/* Ends the program with a message if a call has failed. */
void cuda_check(CUresult result, const char *call);

#endif
