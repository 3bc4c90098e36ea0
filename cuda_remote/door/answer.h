/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RC_DOOR_ANSWER_H
#define RC_DOOR_ANSWER_H

#include "cuda_remote/door/door.h"

/* Sends a refusal, logs it, closes fd. name: the peer's, for the log. */
void door_refuse(int fd, const char *name, enum rc_door_reason reason, const char *text);

#endif
