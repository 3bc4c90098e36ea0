/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's channel descriptions and the driver's formats of arrays. */
#ifndef RUNTIME_CHANNEL_H
#define RUNTIME_CHANNEL_H

#include "cuda_remote/runtime/runtime.h"

/* False: no format of the driver's. */
bool channel_to_format(const struct cudaChannelFormatDesc *channel, CUarray_format *format, unsigned *channels);

/* All zero, kind none, for a format that the runtime has no description of. */
struct cudaChannelFormatDesc channel_of_format(CUarray_format format, unsigned channels);

/* Bytes of a texel; 0 for a format that the runtime has no description of. */
size_t channel_texel_bytes(CUarray_format format, unsigned channels);

#endif
