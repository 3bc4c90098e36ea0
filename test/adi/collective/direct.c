/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall in which each rank reads the memory of the others: results, and the number of such reads, which this program counts in
 * place of the C library's function. A type that is not contiguous at one rank, ranks that disagree about the size, and a system that
 * does not allow the reads.
 */
#define _GNU_SOURCE
#include "test/adi/check_mpi.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 300000, RANKS_MAX = 8 };

static int rank, size, reads;
static bool refuse;

/* Visible, so that the library calls it. */
__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
								const struct iovec *there, unsigned long m, unsigned long flags)
{
	reads++;
	if (!refuse)
		return syscall(SYS_process_vm_readv, pid, here, n, there, m, flags);
	errno = EPERM;
	return -1;
}

static unsigned char byte_of(int turn, int from, int to, int i)
{
	return (unsigned char)(turn + 3 * from + 11 * to + i + i / 255);
}

/* Returns the number of reads. strided: this rank sends only every second element of its buffer. */
static int alltoall(int turn, bool in_place, bool strided)
{
	int step = strided ? 2 : 1;
	unsigned char *out = malloc((size_t)size * BYTES * (size_t)step), *in = malloc((size_t)size * BYTES);
	MPI_Datatype type = MPI_BYTE;
	if (strided) {
		MPI_Type_create_resized(MPI_BYTE, 0, 2, &type);
		MPI_Type_commit(&type);
	}
	for (int to = 0; to < size; to++)
		for (int i = 0; i < BYTES; i++)
			(in_place ? in : out)[(to * BYTES + i) * step] = byte_of(turn, rank, to, i);
	reads = 0;
	if (in_place)
		MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, BYTES, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Alltoall(out, BYTES, type, in, BYTES, MPI_BYTE, MPI_COMM_WORLD);
	int done = reads;
	/* The buffer may be changed as soon as the collective has returned. */
	memset(out, 0xdd, (size_t)size * BYTES * (size_t)step);
	for (int from = 0; from < size; from++)
		for (int i = 0; i < BYTES; i++)
			CHECK(in[from * BYTES + i] == byte_of(turn, from, rank, i));
	if (strided)
		MPI_Type_free(&type);
	free(out);
	free(in);
	return done;
}

static void disagree(void)
{
	int mine = rank ? BYTES : BYTES + 8;
	unsigned char *out = calloc((size_t)size, BYTES + 8), *in = calloc((size_t)size, BYTES + 8);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(MPI_Alltoall(out, mine, MPI_BYTE, in, mine, MPI_BYTE, MPI_COMM_WORLD) == MPI_ERR_TRUNCATE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size > 2 && size <= RANKS_MAX);
	for (int i = 0; i < 4; i++) /* the segment exists */
		MPI_Barrier(MPI_COMM_WORLD);
	for (int turn = 0; turn < 20; turn++)
		CHECK(alltoall(turn, false, false) == size - 1);
	CHECK(alltoall(20, true, false) == 0);
	alltoall(21, false, rank == 1);
	CHECK(alltoall(22, false, false) == size - 1);
	disagree();
	CHECK(alltoall(23, false, false) == size - 1);
	refuse = rank == 2;
	CHECK(alltoall(24, false, false) >= 1);
	CHECK(alltoall(25, false, false) == 0);
	MPI_Finalize();
	return 0;
}
