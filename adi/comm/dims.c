/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create (MPI 5.0, section 8.5.2): of all products of divisors it takes one with the smallest difference between
 * largest and smallest factor; of several, the one with the largest smallest factor, then the largest second smallest, and
 * so on. */
#include "adi/bindings/functions.h"
#include "adi/core/error.h"

#include <stdlib.h>
#include <string.h>

/* Divisors of a number, ascending. An int has at most 1344. */
struct divisors {
	int n;
	int value[1536];
};

static void find_divisors(int number, struct divisors *divisors)
{
	int large[768], n = 0;
	divisors->n = 0;
	for (int64_t d = 1; d * d <= number; d++) {
		if (number % d)
			continue;
		divisors->value[divisors->n++] = (int)d;
		if (d * d < number)
			large[n++] = number / (int)d;
	}
	while (n)
		divisors->value[divisors->n++] = large[--n];
}

/* Whether factor to the power of n is at least number. */
static bool reaches(int64_t factor, int n, int64_t number)
{
	int64_t power = 1;
	for (int i = 0; i < n && power < number && factor > 1; i++)
		power *= factor;
	return power >= number;
}

/* A search for factors in ascending order. */
struct search {
	const struct divisors *divisors;
	int n;
	int *chosen, *best; /* [n] */
	int64_t difference; /* of best */
};

/* Chooses the factors from i on. Their product is `number`. Tries large factors first. So of several equally good results the
 * first one is taken, and the search ends at the first factor that is too small for a better result. */
static void search(struct search *s, int i, int number)
{
	int left = s->n - i - 1;
	if (!left) {
		s->chosen[i] = number;
		if (number - s->chosen[0] >= s->difference)
			return;
		s->difference = number - s->chosen[0];
		memcpy(s->best, s->chosen, (size_t)s->n * sizeof *s->best);
		return;
	}
	for (int k = s->divisors->n - 1; k >= 0; k--) {
		int factor = s->divisors->value[k];
		if (number % factor || reaches(factor, left + 1, (int64_t)number + 1))
			continue;
		if (i && factor < s->chosen[i - 1])
			return;
		s->chosen[i] = factor;
		int64_t most = s->chosen[0] + s->difference - 1;
		if (!reaches(most < number ? most : number, left, number / factor))
			return;
		search(s, i + 1, number / factor);
	}
}

/* Divides nnodes by the dimensions that are given; *free_dims is the number of the others. */
static int divide(int nnodes, int ndims, const int *dims, int *rest, int *free_dims)
{
	int64_t given = 1;
	*free_dims = 0;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0)
			return adi_error(MPI_ERR_DIMS, "dims[%d] is %d; valid: 0 and above", i, dims[i]);
		if (!dims[i])
			++*free_dims;
		else if ((given *= dims[i]) > nnodes)
			break;
	}
	if (given > nnodes || nnodes % given || (!*free_dims && given != nnodes))
		return adi_error(MPI_ERR_DIMS, "nnodes is %d, which the given dimensions do not divide%s", nnodes,
				 *free_dims ? "" : " to 1");
	*rest = nnodes / (int)given;
	return MPI_SUCCESS;
}

int mpi_dims_create(int nnodes, int ndims, int dims[])
{
	if (nnodes <= 0 || ndims < 0)
		return adi_error(nnodes <= 0 ? MPI_ERR_ARG : MPI_ERR_DIMS,
				 "nnodes is %d and ndims is %d; valid: nnodes above 0, ndims 0 and above", nnodes, ndims);
	if (!ndims)
		return nnodes == 1 ? MPI_SUCCESS
				   : adi_error(MPI_ERR_DIMS, "ndims is 0 and nnodes is %d; valid with ndims 0: 1", nnodes);
	if (!dims)
		return adi_error(MPI_ERR_ARG, "dims is a null pointer");
	int rest = 1, n = 0, class = divide(nnodes, ndims, dims, &rest, &n);
	if (class || !n)
		return class;
	struct divisors *divisors = malloc(sizeof *divisors);
	int *factors = calloc(2 * (size_t)n, sizeof *factors);
	if (!divisors || !factors) {
		class = adi_error(MPI_ERR_NO_MEM, "no memory for %d dimensions", ndims);
	} else {
		struct search s = { divisors, n, factors, factors + n, INT64_MAX / 2 };
		find_divisors(rest, divisors);
		search(&s, 0, rest);
		for (int i = 0, k = n; i < ndims; i++)
			if (!dims[i])
				dims[i] = s.best[--k];
	}
	free(divisors);
	free(factors);
	return class;
}
