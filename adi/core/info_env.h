/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process was started with, as info: MPI 5.0, sections 10.1 and 11.2.4. */
#ifndef ADI_CORE_INFO_ENV_H
#define ADI_CORE_INFO_ENV_H

#include "adi/core/info.h"

/* The object of MPI_INFO_ENV. NULL: no memory. */
struct adi_info *adi_info_env(void);
/* A new object with the same keys, without what is known of the job: its content is the same at any time. argc, argv: of main;
 * 0 and NULL: those of the process. */
struct adi_info *adi_info_describe(int argc, char **argv);
/* Adds to MPI_INFO_ENV what is known once the job is started. */
void adi_info_env_job(int size, int thread_level);
/* "MPI_THREAD_MULTIPLE" and so on, and back; -1: no such name. */
const char *adi_thread_level_name(int level);
int adi_thread_level_named(const char *name);

#endif
