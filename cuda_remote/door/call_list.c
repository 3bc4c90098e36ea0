/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of two builds: which of this build's calls the other has, and under which numbers. */
#include "cuda_remote/door/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void door_calls_fill(struct door_calls *message)
{
	memset(message, 0, sizeof *message);
	door_header_set(&message->header, DOOR_CALLS, sizeof *message);
	message->count = door_call_count;
	for (uint32_t i = 0; i < door_call_count; i++)
		message->hash[i] = door_call_list[i].hash;
}

/* The other side's number of a call; 0: it has no such call. */
static uint16_t find(const struct door_calls *theirs, uint64_t hash)
{
	for (uint32_t i = 0; i < theirs->count; i++)
		if (theirs->hash[i] == hash)
			return (uint16_t)(i + 1);
	return 0;
}

int door_calls_match(const struct door_calls *theirs, uint16_t numbers[RC_DOOR_CALLS_MAX], char text[RC_DOOR_TEXT_MAX])
{
	const struct door_call *first = NULL, *needed = NULL;
	int missing = 0;
	memset(numbers, 0, sizeof *numbers * RC_DOOR_CALLS_MAX);
	for (uint32_t i = 0; i < door_call_count; i++) {
		const struct door_call *call = &door_call_list[i];
		numbers[i + 1] = find(theirs, call->hash);
		if (numbers[i + 1])
			continue;
		missing++;
		first = first ? first : call;
		if (call->needed && !needed)
			needed = call;
	}
	if (needed)
		snprintf(text, RC_DOOR_TEXT_MAX, "builds differ in the call %s; install the same build of Headrace on both hosts",
			 needed->name);
	else if (missing)
		snprintf(text, RC_DOOR_TEXT_MAX, "another build of Headrace: %d of this build's calls are not supported, the first is %s",
			 missing, first->name);
	else
		snprintf(text, RC_DOOR_TEXT_MAX, "another build of Headrace, which supports all calls of this one");
	return needed ? -EPROTONOSUPPORT : missing;
}
