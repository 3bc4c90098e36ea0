/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the settings that are linked into the installed CUDA libraries. */
#ifndef HR_INFO_LIBRARIES_H
#define HR_INFO_LIBRARIES_H

#include "rdma_channel/base/setting.h"

typedef void (*info_settings_fn)(void *context, const struct hr_setting *const *first, size_t n);

/* Calls visit with the settings of each installed CUDA library. The settings stay valid until the process ends. */
void info_library_settings(info_settings_fn visit, void *context);

#endif
