/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints of communicators, for the files of comm/ only. */
#ifndef ADI_COMM_HINTS_H
#define ADI_COMM_HINTS_H

#include "adi/comm/comm.h"

/* Adds the known hints of info, which may be NULL, to those of comm. Returns an error class. */
int adi_comm_set_hints(struct adi_comm *comm, const struct adi_info *info);

#endif
