/* SPDX-License-Identifier: BSD-3-Clause */
/* What the generated weak definitions do. They know nothing of CUDA's headers: their own prototypes are all (void). */
#ifndef RUNTIME_UNSUPPORTED_H
#define RUNTIME_UNSUPPORTED_H

/* Names the function in the log (HEADRACE_LOG=warn) the first time; records and returns cudaErrorNotSupported. */
int runtime_unsupported(const char *name, char *logged);

#endif
