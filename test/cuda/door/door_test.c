/* SPDX-License-Identifier: BSD-3-Clause */
/* The door: who may enter, who may not, and that no client delays another. */
#include "test/cuda/door/door_kit.h"

int main(void)
{
	void (*const add[])(TCase *) = { add_entering,	  add_keys,	   add_encryption,
					 add_bad_servers, add_bad_clients, add_listening };
	return run_cases("door", add, sizeof add / sizeof *add);
}
