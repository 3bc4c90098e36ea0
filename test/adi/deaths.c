/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1 of three dies by SIGKILL. Each of the other ranks calls the operation that the first argument names, and must get
 * MPI_ERR_PROC_FAILED. Then the two exchange a message, which must still work. Nothing depends on whether rank 1 dies before or
 * while they wait. If there is a second argument, "fatal", the default error handler is kept, which must end the job. "init": rank 1
 * dies before MPI_Init.
 */
#include "test/adi/check_mpi.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define VICTIM 1
#define LONG_BYTES (64 << 20)

static int rank;
static MPI_Win win;
static long *window_memory;
static bool fatal;

static bool is_victim(void)
{
	return rank == VICTIM;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* ---- messages ---- */

static int any_receive(void)
{
	int value;
	if (is_victim())
		die();
	return MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int any_test(void)
{
	int value, flag = 0, class = MPI_SUCCESS;
	MPI_Request request;
	if (is_victim())
		die();
	MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
	while (!flag && class == MPI_SUCCESS)
		class = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	return class;
}

static int any_probe(void)
{
	if (is_victim())
		die();
	return MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static char *long_buffer(void)
{
	char *buffer = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buffer != MAP_FAILED);
	return buffer;
}

/* Rank 0 sends to the victim, which has no receive; rank 2 receives what the victim has announced. */
static int rendezvous(void)
{
	char *buffer = long_buffer();
	MPI_Request request;
	if (is_victim()) {
		MPI_Isend(buffer, LONG_BYTES, MPI_CHAR, 2, 0, MPI_COMM_WORLD, &request);
		die();
	}
	return rank == 0 ? MPI_Send(buffer, LONG_BYTES, MPI_CHAR, VICTIM, 0, MPI_COMM_WORLD) :
			   MPI_Recv(buffer, LONG_BYTES, MPI_CHAR, VICTIM, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* As rendezvous; the victim has made one of two partitions ready. */
static int partitioned(void)
{
	char *buffer = long_buffer();
	MPI_Request request;
	if (rank == 2)
		MPI_Precv_init(buffer, 2, LONG_BYTES / 2, MPI_CHAR, VICTIM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	else
		MPI_Psend_init(buffer, 2, LONG_BYTES / 2, MPI_CHAR, rank == 0 ? VICTIM : 2, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &request);
	MPI_Start(&request);
	if (rank != 2)
		MPI_Pready(0, request);
	if (is_victim())
		die();
	if (rank == 0)
		MPI_Pready(1, request);
	return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* More sends than the victim permits: the last is held by its sender. */
static int held(void)
{
	enum { SENDS = 10000 };
	static MPI_Request request[SENDS];
	for (int i = 0; i < SENDS && !is_victim(); i++)
		MPI_Issend(NULL, 0, MPI_INT, VICTIM, 0, MPI_COMM_WORLD, &request[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	return MPI_Wait(&request[SENDS - 1], MPI_STATUS_IGNORE);
}

/* ---- collectives ---- */

/* Collectives of the victim too: a segment of shared memory, if there is one, exists afterwards. */
static void warm_up(void)
{
	long value = 1, sum;
	for (int i = 0; i < 5; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == 3);
	}
	if (is_victim())
		die();
}

static int barrier(void)
{
	warm_up();
	return MPI_Barrier(MPI_COMM_WORLD);
}

/* If ranks share processors, rank 0, the root of the broadcast behind the last barrier, leaves the barrier first. Its end must not
 * tell rank 2 that the victim has entered. */
static int barrier_of_root(void)
{
	long value = 1;
	for (int i = 0; i < 5; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	}
	if (is_victim())
		die();
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int allreduce(void)
{
	long value = 1, sum;
	warm_up();
	return MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

/* The root of a reduction is rank 2 of four, which has no connection to the victim. Ranks 0 and 3 have written their parts, have left
 * the reduction, and do not call MPI until the root has its error. */
static int reduce_elsewhere(void)
{
	enum { RANKS = 4, ROOT = 2 };
	long value = 1, sum, all[RANKS], pid = getpid(), pids[RANKS];
	int class, got;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 5; i++) /* the segment exists afterwards */
		MPI_Gather(&value, 1, MPI_LONG, all, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	MPI_Allgather(&pid, 1, MPI_LONG, pids, 1, MPI_LONG, MPI_COMM_WORLD);
	if (is_victim())
		die();
	class = MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_SUM, ROOT, MPI_COMM_WORLD);
	if (rank == ROOT) {
		kill((pid_t)pids[0], SIGUSR1);
		kill((pid_t)pids[3], SIGUSR1);
		return class;
	}
	sigwait(&set, &got);
	if (rank == 3)
		_exit(0);
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int allreduce_long(void)
{
	char *in = long_buffer(), *out = long_buffer();
	warm_up();
	return MPI_Allreduce(in, out, LONG_BYTES / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static int nonblocking(void)
{
	long value = 1, sum;
	MPI_Request request;
	warm_up();
	MPI_Iallreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
	return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Before the ranks have exchanged any message. */
static int first_barrier(void)
{
	if (is_victim())
		die();
	return MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows ---- */

static void window(bool created)
{
	static long memory[8];
	if (created) {
		MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		window_memory = memory;
	} else {
		MPI_Win_allocate(sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &win);
	}
	if (!fatal)
		MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
}

/* The victim dies with the lock of rank 0's memory. */
static int lock(int held, int wanted)
{
	if (is_victim())
		MPI_Win_lock(held, 0, 0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	int class;
	/* It may get the lock of rank 0 before the victim dies only if both have a shared one. */
	while ((class = MPI_Win_lock(wanted, 0, 0, win)) == MPI_SUCCESS)
		CHECK(held == MPI_LOCK_SHARED && wanted == MPI_LOCK_SHARED && !MPI_Win_unlock(0, win));
	/* The window stays usable where the victim held nothing. */
	CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win) == MPI_SUCCESS);
	long one = 1;
	CHECK(MPI_Accumulate(&one, 1, MPI_LONG, 2, 0, 1, MPI_LONG, MPI_SUM, win) == MPI_SUCCESS);
	CHECK(MPI_Win_unlock(2, win) == MPI_SUCCESS);
	return class;
}

static int lock_exclusive(void)
{
	window(false);
	return lock(MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
}

static int lock_shared(void)
{
	window(false);
	return lock(MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE);
}

static int lock_created(void)
{
	window(true);
	return lock(MPI_LOCK_EXCLUSIVE, MPI_LOCK_EXCLUSIVE);
}

/* Both wait for a lock that the victim holds: the one that asked first must not block the other either. */
static int lock_created_shared(void)
{
	window(true);
	return lock(MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE);
}

/* The victim is the target. */
static int lock_target(void)
{
	window(true);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	int class;
	while ((class = MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, 0, win)) == MPI_SUCCESS)
		class = MPI_Win_unlock(VICTIM, win);
	return class;
}

static int lock_all(void)
{
	window(false);
	if (is_victim())
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	int class = MPI_Win_lock_all(0, win);
	long one = 1;
	/* Without shared memory the lock of a target is taken at the first operation on it. */
	if (class == MPI_SUCCESS)
		class = MPI_Accumulate(&one, 1, MPI_LONG, 2, 0, 1, MPI_LONG, MPI_SUM, win);
	if (class == MPI_SUCCESS)
		class = MPI_Win_flush(2, win);
	return class;
}

static int fetch(void)
{
	long one = 1, old;
	window(true);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	/* One that comes before the victim's end succeeds. */
	int class;
	while ((class = MPI_Fetch_and_op(&one, &old, MPI_LONG, VICTIM, 0, MPI_SUM, win)) == MPI_SUCCESS &&
	       (class = MPI_Win_flush(VICTIM, win)) == MPI_SUCCESS)
		;
	return class;
}

/* Over verbs the adapter executes the operations, from the second one on. */
static int operations(bool puts)
{
	static long data[8];
	int class = MPI_SUCCESS;
	window(true);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	for (int i = 0; class == MPI_SUCCESS; i++) {
		if (i == 10)
			MPI_Barrier(MPI_COMM_WORLD);
		if (i == 10 && is_victim())
			die();
		if (puts)
			class = MPI_Put(data, 8, MPI_LONG, VICTIM, 0, 8, MPI_LONG, win);
		else
			class = MPI_Get(data, 8, MPI_LONG, VICTIM, 0, 8, MPI_LONG, win);
		if (class == MPI_SUCCESS)
			class = MPI_Win_flush(VICTIM, win);
	}
	return class;
}

static int puts_flush(void)
{
	return operations(true);
}

static int gets_flush(void)
{
	return operations(false);
}

static int fence(bool created)
{
	window(created);
	MPI_Win_fence(0, win);
	if (is_victim())
		die();
	return MPI_Win_fence(0, win);
}

static int fence_allocated(void)
{
	return fence(false);
}

static int fence_created(void)
{
	return fence(true);
}

/* Rank 0 waits for the victim's MPI_Win_post, rank 2 for its MPI_Win_complete. */
static int post_start(void)
{
	MPI_Group all, others;
	int ranks[] = { VICTIM };
	window(false);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, ranks, &others);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim())
		die();
	if (rank == 0)
		return MPI_Win_start(others, 0, win);
	int class = MPI_Win_post(others, 0, win);
	return class ? class : MPI_Win_wait(win);
}

/* The victim dies in the middle of an accumulate, because its data end at memory that it must not read. */
static int accumulate(void)
{
	double one = 1;
	int class = MPI_SUCCESS;
	window(false);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_victim()) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
		MPI_Accumulate(pages + 4096 - 8, 2, MPI_DOUBLE, 0, 0, 2, MPI_DOUBLE, MPI_SUM, win);
		die();
	}
	/* One that comes before the victim's succeeds. */
	while (class == MPI_SUCCESS)
		class = MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win);
	return class;
}

/* ---- start and end ---- */

static int finalize(void)
{
	if (is_victim())
		die();
	return MPI_Finalize();
}

static const struct {
	const char *name;
	int (*function)(void);
} cases[] = {
	{ "any_receive", any_receive }, { "any_test", any_test }, { "any_probe", any_probe }, { "rendezvous", rendezvous },
	{ "partitioned", partitioned }, { "held", held }, { "barrier", barrier }, { "barrier_of_root", barrier_of_root },
	{ "allreduce", allreduce },
	{ "allreduce_long", allreduce_long }, { "reduce_elsewhere", reduce_elsewhere },
	{ "nonblocking", nonblocking }, { "first_barrier", first_barrier }, { "lock_exclusive", lock_exclusive },
	{ "lock_shared", lock_shared }, { "lock_created", lock_created }, { "lock_created_shared", lock_created_shared },
	{ "lock_target", lock_target }, { "lock_all", lock_all }, { "fetch", fetch }, { "puts_flush", puts_flush },
	{ "gets_flush", gets_flush }, { "fence_allocated", fence_allocated },
	{ "fence_created", fence_created }, { "post_start", post_start }, { "accumulate", accumulate }, { "finalize", finalize },
};

static int run(const char *name)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (!strcmp(cases[i].name, name))
			return cases[i].function();
	fprintf(stderr, "there is no case %s\n", name);
	exit(2);
}

/* The ranks that are alive exchange a message: so none of them ends before the other has got its error. */
static void meet(void)
{
	int mine = rank, theirs = -1, other = 2 - rank;
	CHECK(!MPI_Sendrecv(&mine, 1, MPI_INT, other, 1, &theirs, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(theirs == other);
}

int main(int argc, char **argv)
{
	int class;
	const char *number = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("PMI_RANK");
	if (argc < 2 || !number)
		return 2;
	if (!strcmp(argv[1], "init") && atoi(number) == VICTIM)
		die();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fatal = argc > 2;
	if (!fatal) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* of MPI_Finalize */
	}
	MPI_Error_class(run(argv[1]), &class);
	bool ends = !strcmp(argv[1], "finalize"); /* may succeed: it needs the ranks that are alive only */
	if (class == MPI_ERR_PROC_FAILED && !ends)
		meet();
	if (class == MPI_ERR_PROC_FAILED || (ends && class == MPI_SUCCESS))
		printf("rank %d: told that rank 1 is gone\n", rank);
	else
		printf("rank %d: %s returned class %d\n", rank, argv[1], class);
	fflush(stdout);
	_exit(0);
}
