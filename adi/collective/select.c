/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of algorithms. HEADRACE_MPI_ALGORITHM forces algorithms: a list of COLLECTIVE=ALGORITHM with the names below, for
 * example "allreduce=ring,bcast=binomial". A forced algorithm is used wherever it can be: "node" and "direct" only for blocking
 * collectives of ranks that share a segment and up to the size in the table, "two_level" only for collectives of ranks on several
 * machines, and no algorithm that changes the order of operands if the operation does not commute. All ranks need the same value.
 */
#include "adi/collective/select.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

HR_SETTING(algorithm_setting, "HEADRACE_MPI_ALGORITHM", "", 0, 0,
	   "algorithms of MPI collectives, e.g. allreduce=ring,bcast=binomial; empty: by size and number of ranks");

static const char *const collective_name[ADI_COLLECTIVES] = {
	[ADI_COLLECTIVE_BARRIER] = "barrier", [ADI_COLLECTIVE_BCAST] = "bcast", [ADI_COLLECTIVE_REDUCE] = "reduce",
	[ADI_COLLECTIVE_ALLREDUCE] = "allreduce", [ADI_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
	[ADI_COLLECTIVE_GATHER] = "gather", [ADI_COLLECTIVE_SCATTER] = "scatter", [ADI_COLLECTIVE_ALLGATHER] = "allgather",
	[ADI_COLLECTIVE_ALLTOALL] = "alltoall",
};

static const char *const algorithm_name[ADI_ALGORITHMS] = {
	[ADI_ALGORITHM_NODE] = "node", [ADI_ALGORITHM_DIRECT] = "direct", [ADI_ALGORITHM_TWO_LEVEL] = "two_level",
	[ADI_ALGORITHM_DISSEMINATION] = "dissemination",
	[ADI_ALGORITHM_BINOMIAL] = "binomial", [ADI_ALGORITHM_SCATTER_RING] = "scatter_ring",
	[ADI_ALGORITHM_CHAIN] = "chain", [ADI_ALGORITHM_DOUBLING] = "doubling",
	[ADI_ALGORITHM_RABENSEIFNER] = "rabenseifner", [ADI_ALGORITHM_RING] = "ring",
	[ADI_ALGORITHM_HALVING] = "halving", [ADI_ALGORITHM_PAIRWISE] = "pairwise",
	[ADI_ALGORITHM_LINEAR] = "linear", [ADI_ALGORITHM_SPREAD] = "spread",
	[ADI_ALGORITHM_BRUCK] = "bruck",
};

#define ANY_SIZE SIZE_MAX
#define ANY_RANKS INT_MAX

/* The first line that fits is used. The lines of a collective follow each other. ordered: keeps the order of operands. */
static const struct line {
	enum adi_collective collective;
	size_t bytes; /* at most */
	int ranks;    /* at most */
	enum adi_algorithm algorithm;
	bool ordered;
} table[] = {
	{ ADI_COLLECTIVE_BARRIER, ANY_SIZE, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_BARRIER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_TWO_LEVEL, true },
	{ ADI_COLLECTIVE_BARRIER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_DISSEMINATION, true },
	{ ADI_COLLECTIVE_BCAST, 65536, 2, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_BCAST, ANY_SIZE, 2, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_BCAST, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_BCAST, 16384, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_BCAST, 16384, ANY_RANKS, ADI_ALGORITHM_TWO_LEVEL, true },
	{ ADI_COLLECTIVE_BCAST, 2048, 8, ADI_ALGORITHM_LINEAR, true },
	{ ADI_COLLECTIVE_BCAST, 131072, ANY_RANKS, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_BCAST, ANY_SIZE, 4, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_BCAST, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_SCATTER_RING, true },
	{ ADI_COLLECTIVE_BCAST, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_CHAIN, true },
	{ ADI_COLLECTIVE_REDUCE, ANY_SIZE, 4, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_REDUCE, 16384, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_REDUCE, 4096, ANY_RANKS, ADI_ALGORITHM_TWO_LEVEL, true },
	{ ADI_COLLECTIVE_REDUCE, 65536, ANY_RANKS, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_REDUCE, ANY_SIZE, 4, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_REDUCE, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_RABENSEIFNER, true },
	{ ADI_COLLECTIVE_ALLREDUCE, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLREDUCE, 1024, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLREDUCE, 4096, ANY_RANKS, ADI_ALGORITHM_TWO_LEVEL, true },
	{ ADI_COLLECTIVE_ALLREDUCE, 8192, ANY_RANKS, ADI_ALGORITHM_DOUBLING, true },
	{ ADI_COLLECTIVE_ALLREDUCE, ANY_SIZE, 2, ADI_ALGORITHM_DOUBLING, true },
	{ ADI_COLLECTIVE_ALLREDUCE, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_RABENSEIFNER, true },
	{ ADI_COLLECTIVE_ALLREDUCE, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_RING, false },
	{ ADI_COLLECTIVE_REDUCE_SCATTER, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_REDUCE_SCATTER, 65536, ANY_RANKS, ADI_ALGORITHM_HALVING, false },
	{ ADI_COLLECTIVE_REDUCE_SCATTER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_PAIRWISE, true },
	{ ADI_COLLECTIVE_GATHER, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_GATHER, 256, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_GATHER, ANY_SIZE, 15, ADI_ALGORITHM_LINEAR, true },
	{ ADI_COLLECTIVE_GATHER, 2048, ANY_RANKS, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_GATHER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_LINEAR, true },
	{ ADI_COLLECTIVE_SCATTER, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_SCATTER, 256, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_SCATTER, ANY_SIZE, 15, ADI_ALGORITHM_LINEAR, true },
	{ ADI_COLLECTIVE_SCATTER, 2048, ANY_RANKS, ADI_ALGORITHM_BINOMIAL, true },
	{ ADI_COLLECTIVE_SCATTER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_LINEAR, true },
	{ ADI_COLLECTIVE_ALLGATHER, ANY_SIZE, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLGATHER, 8192, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLGATHER, 512, ANY_RANKS, ADI_ALGORITHM_TWO_LEVEL, true },
	{ ADI_COLLECTIVE_ALLGATHER, 32768, 8, ADI_ALGORITHM_SPREAD, true },
	{ ADI_COLLECTIVE_ALLGATHER, 4096, ANY_RANKS, ADI_ALGORITHM_DOUBLING, true },
	{ ADI_COLLECTIVE_ALLGATHER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_RING, true },
	{ ADI_COLLECTIVE_ALLGATHER, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_BRUCK, true },
	{ ADI_COLLECTIVE_ALLTOALL, 262144, 16, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLTOALL, ANY_SIZE, 2, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLTOALL, ANY_SIZE, 16, ADI_ALGORITHM_DIRECT, true },
	{ ADI_COLLECTIVE_ALLTOALL, 256, 256, ADI_ALGORITHM_NODE, true },
	{ ADI_COLLECTIVE_ALLTOALL, ANY_SIZE, 15, ADI_ALGORITHM_SPREAD, true },
	{ ADI_COLLECTIVE_ALLTOALL, 256, ANY_RANKS, ADI_ALGORITHM_BRUCK, true },
	{ ADI_COLLECTIVE_ALLTOALL, ANY_SIZE, ANY_RANKS, ADI_ALGORITHM_SPREAD, true },
};
#define LINES (sizeof table / sizeof *table)

static bool parsed;
static size_t first[ADI_COLLECTIVES]; /* line of each collective */
static int forced[ADI_COLLECTIVES]; /* 1 + enum adi_algorithm; 0: by the table */

static int find_name(const char *const *names, int n, const char *text, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], text, len))
			return i;
	return -1;
}

static bool in_table(int collective, int algorithm)
{
	for (size_t i = 0; i < LINES; i++)
		if ((int)table[i].collective == collective && (int)table[i].algorithm == algorithm)
			return true;
	return false;
}

/* One COLLECTIVE=ALGORITHM of the setting. */
static void force(const char *text, size_t len)
{
	const char *equals = memchr(text, '=', len);
	size_t name = equals ? (size_t)(equals - text) : 0;
	int collective = equals ? find_name(collective_name, ADI_COLLECTIVES, text, name) : -1;
	int algorithm = equals ? find_name(algorithm_name, ADI_ALGORITHMS, equals + 1, len - name - 1) : -1;
	if (collective >= 0 && algorithm >= 0 && in_table(collective, algorithm)) {
		forced[collective] = 1 + algorithm;
		return;
	}
	char valid[1024] = "";
	size_t used = 0;
	for (int c = 0; c < ADI_COLLECTIVES; c++)
		for (int a = 0; a < ADI_ALGORITHMS; a++)
			if (in_table(c, a) && used < sizeof valid - 64)
				used += (size_t)snprintf(valid + used, sizeof valid - used, " %s=%s", collective_name[c],
							 algorithm_name[a]);
	hr_log(HR_LOG_ERROR, "%s: %.*s is ignored; valid entries, separated by commas:%s", algorithm_setting.variable, (int)len,
	       text, valid);
}

static void parse(void)
{
	const char *text = hr_setting_text(&algorithm_setting);
	parsed = true;
	for (size_t i = LINES; i-- > 0;)
		first[table[i].collective] = i;
	while (*text) {
		size_t len = strcspn(text, ",");
		if (len)
			force(text, len);
		text += len + (text[len] == ',');
	}
}

static bool fits(const struct line *line, size_t bytes, bool ordered, unsigned may)
{
	if (ordered && !line->ordered)
		return false;
	switch (line->algorithm) {
	case ADI_ALGORITHM_NODE:
	case ADI_ALGORITHM_DIRECT: return may & ADI_MAY_NODE && bytes <= line->bytes;
	case ADI_ALGORITHM_TWO_LEVEL: return may & ADI_MAY_TWO_LEVEL;
	default: return true;
	}
}

enum adi_algorithm adi_select(enum adi_collective collective, size_t bytes, int ranks, bool ordered, unsigned may)
{
	if (!parsed)
		parse();
	const struct line *begin = table + first[collective], *end = table + LINES, *line;
	int wanted = forced[collective] - 1;
	for (line = begin; wanted >= 0 && line < end && line->collective == collective; line++)
		if ((int)line->algorithm == wanted && fits(line, bytes, ordered, may))
			return line->algorithm;
	/* Forced, but not possible here: node and two_level fall back on the other algorithms. */
	if (wanted >= 0 && wanted != ADI_ALGORITHM_NODE && wanted != ADI_ALGORITHM_DIRECT)
		may &= ~(unsigned)ADI_MAY_NODE;
	if (wanted >= 0 && wanted != ADI_ALGORITHM_TWO_LEVEL)
		may &= ~(unsigned)ADI_MAY_TWO_LEVEL;
	for (line = begin; line < end && line->collective == collective; line++)
		if (bytes <= line->bytes && ranks <= line->ranks && fits(line, bytes, ordered, may))
			return line->algorithm;
	return ADI_ALGORITHMS; /* Each collective has a line that fits all. */
}

bool adi_select_line(size_t i, struct adi_select_line *line)
{
	if (i >= LINES)
		return false;
	*line = (struct adi_select_line){ collective_name[table[i].collective], algorithm_name[table[i].algorithm], table[i].bytes,
					  table[i].ranks, table[i].ordered };
	return true;
}
