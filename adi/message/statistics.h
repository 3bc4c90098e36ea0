/* SPDX-License-Identifier: BSD-3-Clause */
/* What message/ tells tool/ about its queues. Weak: tool/ leaves out what is not defined. */
#ifndef ADI_MESSAGE_STATISTICS_H
#define ADI_MESSAGE_STATISTICS_H

#include "adi/message/request.h"

/* Number of posted receives that no message has matched. match.c. */
uint64_t adi_messages_posted(void) __attribute__((weak));
/* Number of messages that no receive has matched. unexpected.c. */
uint64_t adi_messages_unexpected(void) __attribute__((weak));

#endif
