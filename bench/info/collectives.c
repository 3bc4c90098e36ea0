/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the section collectives, MPI's table of algorithms. The file of the table is compiled into this program. */
#include "bench/info/info.h"

#include "adi/collective/select.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

void info_collectives(void)
{
	struct adi_select_line line;
	puts("Collectives: the first line that fits is used (HEADRACE_MPI_ALGORITHM names another one)");
	printf("  %-15s %10s %8s  %s\n", "collective", "bytes <=", "ranks <=", "algorithm");
	for (size_t i = 0; adi_select_line(i, &line); i++) {
		char bytes[24] = "any", ranks[16] = "any";
		if (line.bytes != SIZE_MAX)
			snprintf(bytes, sizeof bytes, "%zu", line.bytes);
		if (line.ranks != INT_MAX)
			snprintf(ranks, sizeof ranks, "%d", line.ranks);
		printf("  %-15s %10s %8s  %s%s\n", line.collective, bytes, ranks, line.algorithm,
		       line.ordered ? "" : " (operations that commute)");
	}
}
