/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up if the build has no support for a process manager: the job is one process. */
#include "adi/adi.h"

int adi_launch_init(int *rank, int *size, int *local_size)
{
	*rank = 0;
	*size = *local_size = 1;
	return 0;
}

int adi_launch_exchange(const hr_card_t *mine, hr_card_t *cards, int size)
{
	(void)size;
	cards[0] = *mine;
	return 0;
}

int adi_launch_meet_start(void)
{
	return 1;
}

int adi_launch_meet_test(void)
{
	return 1;
}

void adi_launch_abort(int code, const char *message)
{
	(void)code;
	(void)message;
}

void adi_launch_finalize(void)
{
}
