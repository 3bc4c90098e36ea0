/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudaGetDriverEntryPoint of a static runtime returns the driver's functions of the runtime's own release, with the
 * arguments that the program was compiled for. Headrace's libcudart.so.12 is of a later release. So the function is
 * replaced by one that asks libcudart.so.12 for the functions of the program's release.
 */
#ifndef RC_RELINK_ENTRY_POINTS_H
#define RC_RELINK_ENTRY_POINTS_H

#include <stdint.h>

/*
 * The function that replaces name in a static runtime of this release (CUDART_VERSION of CUDA 12), or 0: name has no
 * such function. by_version, by_version_ptsz: cudaGetDriverEntryPointByVersion of libcudart.so.12 and its variant.
 */
uintptr_t entry_points_replace(const char *name, unsigned release, uintptr_t by_version, uintptr_t by_version_ptsz);

#endif
