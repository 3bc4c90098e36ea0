/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between the runtime's channel descriptions and the driver's array formats. */
#ifndef RUNTIME_CHANNEL_FORMAT_H
#define RUNTIME_CHANNEL_FORMAT_H

#include "cuda_remote/runtime/runtime.h"

/* False: the driver has no such format. */
bool channel_to_format(const struct cudaChannelFormatDesc *channel, CUarray_format *format, unsigned *channels);

/* All zero, of kind none, if the runtime has no description of the format. */
struct cudaChannelFormatDesc channel_of_format(CUarray_format format, unsigned channels);

/* Bytes of a texel; 0 if the runtime has no description of the format. */
size_t channel_texel_bytes(CUarray_format format, unsigned channels);

#endif
