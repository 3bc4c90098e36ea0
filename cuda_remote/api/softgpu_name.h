/* SPDX-License-Identifier: BSD-3-Clause */
/* The name by which other libraries recognise the software GPU, also that of a server. */
#ifndef RC_API_SOFTGPU_NAME_H
#define RC_API_SOFTGPU_NAME_H

#define RC_SOFTGPU_NAME "Headrace Software GPU"

#endif
