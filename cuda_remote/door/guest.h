/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HR_DOOR_GUEST_H
#define HR_DOOR_GUEST_H

#include "cuda_remote/door/door.h"

/* Tells a visitor why it may not come in, logs it, closes fd. name: the visitor's, for the log. */
void door_refuse(int fd, const char *name, enum hr_door_reason reason, const char *text);

#endif
