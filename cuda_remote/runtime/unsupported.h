/* SPDX-License-Identifier: BSD-3-Clause */
/* What the generated weak definitions call. They do not include CUDA's headers: their prototypes are all (void). */
#ifndef RUNTIME_UNSUPPORTED_H
#define RUNTIME_UNSUPPORTED_H

/* Logs the name of the function once (HEADRACE_LOG=warn); records and returns cudaErrorNotSupported. */
int runtime_unsupported(const char *name, char *logged);

#endif
