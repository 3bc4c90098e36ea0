/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture and surface references: variables of a module (.texref, .surfref) that the program binds memory to. */
#ifndef SOFTGPU_TEXTURE_REFERENCE_H
#define SOFTGPU_TEXTURE_REFERENCE_H

#include "cuda_remote/softgpu/driver/module/module.h"

/* When the module goes away: its references' handles. The work that used them is done. */
void texture_reference_forget(CUmodule module);

#endif
