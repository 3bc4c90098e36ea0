/* SPDX-License-Identifier: BSD-3-Clause */
/* What module.c offers to library.c: a library is loaded, read and searched as a module is. */
#ifndef RC_CUDA_MODULE_H
#define RC_CUDA_MODULE_H

#include "cuda_remote/client/image.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"

/* Finds the bytes to send and the options for them. The image refers to `bytes`. */
CUresult rc_module_find_image(const void *bytes, unsigned n_options, CUjit_option *names, void **values, struct rc_image *image,
			      struct rc_image_options *options);

/* Loads the image on the link's server, and writes the logs that the options ask for. */
CUresult rc_module_load(struct rc_link *link, struct rc_image *image, const struct rc_image_options *options, void **values,
			bool library, struct rc_module **module);

/* Reads the link's last reply, which describes a module that now has this handle. */
CUresult rc_module_read(struct rc_link *link, enum rc_call call, uint64_t handle, struct rc_module **module);

/* Unloads a module or a library on its server. On success the module has ended. */
CUresult rc_module_unload(struct rc_module *module);

/* Forgets a module or a library, its memory and its handle. */
void rc_module_end(struct rc_module *module);

/* These serve both kinds. CUDA_ERROR_INVALID_HANDLE if there is no such module or library. */
CUresult rc_module_get(enum rc_kind kind, uint64_t handle, struct rc_module **module);
CUresult rc_module_kernel(const struct rc_module *module, const char *name, uint64_t *found);
CUresult rc_module_count(enum rc_kind kind, uint64_t handle, unsigned *count);
/* Asks for a variable. The memory is known to the client from then on. */
CUresult rc_module_global(uint64_t handle, const char *name, CUdeviceptr *address, size_t *size);

#endif
