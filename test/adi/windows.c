/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication: every operation under every kind of synchronisation, on every kind of window, with contiguous and
 * derived datatypes, small and large data. Each rank writes into an area of its own in the memory of each target, and checks
 * what it reads; at the end each target checks its memory.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

#define AREA 4096     /* ints of one origin in the memory of a target */
#define LARGE 200000  /* ints of a large put */

enum sync { FENCE, POST, LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_ALL, SYNCS };
enum flavor { CREATE, ALLOCATE, SHARED, DYNAMIC, FLAVORS };

static int rank, size;

struct memory {
	MPI_Win win;
	enum flavor flavor;
	int *base;
	MPI_Aint *address; /* [size], of dynamic windows; else zeros */
};

static struct memory window_make(enum flavor flavor, size_t ints)
{
	struct memory memory = { .flavor = flavor, .address = calloc((size_t)size, sizeof(MPI_Aint)) };
	MPI_Aint bytes = (MPI_Aint)(ints * sizeof(int)), mine;
	switch (flavor) {
	case CREATE:
		memory.base = malloc((size_t)bytes);
		MPI_Win_create(memory.base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory.win);
		break;
	case ALLOCATE:
		MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory.base, &memory.win);
		break;
	case SHARED:
		MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory.base, &memory.win);
		break;
	default:
		memory.base = malloc((size_t)bytes);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &memory.win);
		MPI_Win_attach(memory.win, memory.base, bytes);
		MPI_Get_address(memory.base, &mine);
		MPI_Allgather(&mine, 1, MPI_AINT, memory.address, 1, MPI_AINT, MPI_COMM_WORLD);
	}
	memset(memory.base, 0, (size_t)bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	return memory;
}

static void window_end(struct memory *memory)
{
	if (memory->flavor == DYNAMIC)
		MPI_Win_detach(memory->win, memory->base);
	MPI_Win_free(&memory->win);
	CHECK(memory->win == MPI_WIN_NULL);
	if (memory->flavor == CREATE || memory->flavor == DYNAMIC)
		free(memory->base);
	free(memory->address);
}

/* The displacement of an int in the memory of a target. */
static MPI_Aint at(const struct memory *memory, int target, size_t i)
{
	return memory->flavor == DYNAMIC ? memory->address[target] + (MPI_Aint)(i * sizeof(int)) : (MPI_Aint)i;
}

static MPI_Group all;

static void epoch_begin(const struct memory *memory, enum sync sync, int target)
{
	switch (sync) {
	case FENCE: MPI_Win_fence(0, memory->win); break;
	case POST:
		MPI_Win_post(all, 0, memory->win);
		MPI_Win_start(all, 0, memory->win);
		break;
	case LOCK_SHARED: MPI_Win_lock(MPI_LOCK_SHARED, target, 0, memory->win); break;
	case LOCK_EXCLUSIVE: MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, memory->win); break;
	default: MPI_Win_lock_all(0, memory->win);
	}
}

static void epoch_end(const struct memory *memory, enum sync sync, int target)
{
	int flag = 0;
	switch (sync) {
	case FENCE: MPI_Win_fence(MPI_MODE_NOSUCCEED, memory->win); break;
	case POST:
		MPI_Win_complete(memory->win);
		if (target % 2)
			MPI_Win_wait(memory->win);
		else
			while (!flag)
				MPI_Win_test(memory->win, &flag);
		break;
	case LOCK_SHARED:
	case LOCK_EXCLUSIVE: MPI_Win_unlock(target, memory->win); break;
	default: MPI_Win_unlock_all(memory->win);
	}
}

static void numbers(int *to, int n, int seed)
{
	for (int i = 0; i < n; i++)
		to[i] = seed + 3 * i;
}

static bool numbered(const int *from, int n, int seed)
{
	for (int i = 0; i < n; i++)
		if (from[i] != seed + 3 * i)
			return false;
	return true;
}

/* Waits until all ranks have finished an epoch with locks, which do not wait for each other. */
static void settle(enum sync sync)
{
	if (sync != FENCE)
		MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts n ints, gets them back, and checks the memory that others have put into. */
static void put_and_get(struct memory *memory, enum sync sync, int n, int area)
{
	int *from = malloc((size_t)n * sizeof *from), *to = malloc((size_t)n * sizeof *to);
	for (int shift = 0; shift < size; shift++) {
		int target = (rank + shift) % size, seed = rank * 1000 + target * 10 + (int)sync;
		numbers(from, n, seed);
		epoch_begin(memory, sync, target);
		MPI_Put(from, n, MPI_INT, target, at(memory, target, (size_t)(rank * area)), n, MPI_INT, memory->win);
		epoch_end(memory, sync, target);
		memset(to, 0xff, (size_t)n * sizeof *to);
		epoch_begin(memory, sync, target);
		MPI_Get(to, n, MPI_INT, target, at(memory, target, (size_t)(rank * area)), n, MPI_INT, memory->win);
		epoch_end(memory, sync, target);
		CHECK(numbered(to, n, seed));
	}
	settle(sync);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, memory->win);
	for (int i = 0; i < size; i++)
		CHECK(numbered(memory->base + i * area, n, i * 1000 + rank * 10 + (int)sync));
	MPI_Win_unlock(rank, memory->win);
	MPI_Barrier(MPI_COMM_WORLD);
	free(from);
	free(to);
}

/* Every third int of the target, from every second int of the origin. */
static void derived(struct memory *memory, enum sync sync, int n)
{
	MPI_Datatype second, third;
	MPI_Type_vector(n, 1, 2, MPI_INT, &second);
	MPI_Type_vector(n, 1, 3, MPI_INT, &third);
	MPI_Type_commit(&second);
	MPI_Type_commit(&third);
	int *from = malloc(2 * (size_t)n * sizeof *from), *to = malloc(2 * (size_t)n * sizeof *to);
	int target = (rank + 1) % size;
	size_t area = (size_t)rank * AREA;
	numbers(from, 2 * n, rank);
	memset(to, 0, 2 * (size_t)n * sizeof *to);
	epoch_begin(memory, sync, target);
	MPI_Put(from, 1, second, target, at(memory, target, area), 1, third, memory->win);
	epoch_end(memory, sync, target);
	epoch_begin(memory, sync, target);
	MPI_Accumulate(from, 1, second, target, at(memory, target, area), 1, third, MPI_SUM, memory->win);
	epoch_end(memory, sync, target);
	epoch_begin(memory, sync, target);
	MPI_Get(to, 1, second, target, at(memory, target, area), 1, third, memory->win);
	epoch_end(memory, sync, target);
	for (int i = 0; i < n; i++)
		CHECK(to[2 * i] == 2 * from[2 * i] && to[2 * i + (i < n - 1)] == (i < n - 1 ? 0 : to[2 * i]));
	epoch_begin(memory, sync, target);
	MPI_Get_accumulate(NULL, 0, MPI_INT, from, 1, second, target, at(memory, target, area), 1, third, MPI_NO_OP, memory->win);
	epoch_end(memory, sync, target);
	for (int i = 0; i < n; i++)
		CHECK(from[2 * i] == to[2 * i]);
	settle(sync);
	MPI_Type_free(&second);
	MPI_Type_free(&third);
	free(from);
	free(to);
}

/* All ranks accumulate into the same elements of all ranks; the sums must be exact. */
static void sums(struct memory *memory, enum sync sync, int n)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, memory->win);
	memset(memory->base, 0, (size_t)n * sizeof(double));
	MPI_Win_unlock(rank, memory->win);
	MPI_Barrier(MPI_COMM_WORLD);
	double *one = malloc((size_t)n * sizeof *one), *old = malloc((size_t)n * sizeof *old);
	for (int i = 0; i < n; i++)
		one[i] = i + 1;
	for (int shift = 0; shift < size; shift++) {
		int target = (rank + shift) % size;
		epoch_begin(memory, sync, target);
		MPI_Accumulate(one, n, MPI_DOUBLE, target, at(memory, target, 0), n, MPI_DOUBLE, MPI_SUM, memory->win);
		MPI_Get_accumulate(one, n, MPI_DOUBLE, old, n, MPI_DOUBLE, target, at(memory, target, 0), n, MPI_DOUBLE, MPI_SUM, memory->win);
		epoch_end(memory, sync, target);
		/* Whole additions only, among them the one above by this rank. */
		for (int i = 0; i < n; i++) {
			int times = (int)(old[i] / (i + 1));
			CHECK(old[i] == times * (double)(i + 1) && times >= 1 && times < 2 * size);
		}
	}
	settle(sync);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, memory->win);
	for (int i = 0; i < n; i++)
		CHECK(((double *)(void *)memory->base)[i] == 2.0 * size * (i + 1));
	MPI_Win_unlock(rank, memory->win);
	MPI_Barrier(MPI_COMM_WORLD);
	free(one);
	free(old);
}

/* Counters of rank 0: by fetch_and_op, by compare_and_swap, and by get and put under an exclusive lock. */
static void counters(struct memory *memory, int times)
{
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, memory->win);
		memset(memory->base, 0, 64);
		MPI_Win_unlock(0, memory->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t one = 1, old = -1, seen = 0;
	short small = 1, small_old;
	for (int i = 0; i < times; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, memory->win);
		int64_t before = old;
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at(memory, 0, 0), MPI_SUM, memory->win);
		MPI_Fetch_and_op(&small, &small_old, MPI_SHORT, 0, at(memory, 0, 2), MPI_SUM, memory->win);
		MPI_Win_flush(0, memory->win);
		CHECK(old > before && old < (int64_t)times * size);
		for (;;) {
			int64_t next = seen + 1, was;
			MPI_Compare_and_swap(&next, &seen, &was, MPI_INT64_T, 0, at(memory, 0, 4), memory->win);
			MPI_Win_flush(0, memory->win);
			bool done = was == seen;
			seen = was;
			if (done)
				break;
		}
		MPI_Win_unlock(0, memory->win);
		int64_t value;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, memory->win);
		MPI_Get(&value, 2, MPI_INT, 0, at(memory, 0, 6), 2, MPI_INT, memory->win);
		MPI_Win_flush(0, memory->win);
		value++;
		MPI_Put(&value, 2, MPI_INT, 0, at(memory, 0, 6), 2, MPI_INT, memory->win);
		MPI_Win_unlock(0, memory->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t total = (int64_t)times * size, now[4];
	MPI_Win_lock_all(0, memory->win);
	MPI_Get(now, 8, MPI_INT, 0, at(memory, 0, 0), 8, MPI_INT, memory->win);
	MPI_Win_flush_local_all(memory->win);
	CHECK(now[0] == total && now[2] == total && now[3] == total);
	memcpy(&small, &now[1], sizeof small);
	CHECK(small == (short)total);
	MPI_Win_unlock_all(memory->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Operations with requests; pairs; MPI_REPLACE in order; requests complete in any order. */
static void requests(struct memory *memory)
{
	struct {
		double value;
		int index;
	} pair = { rank + 0.5, rank }, found = { 0, 0 }, zero = { -1, -1 };
	struct {
		short value;
		int index;
	} small = { (short)-rank, rank }, small_found, small_zero = { 100, -1 };
	int target = (rank + 1) % size, from[4] = { rank, 1, 2, 3 }, to[4] = { 0 }, old[4];
	MPI_Request request[4];
	MPI_Win_lock_all(0, memory->win);
	if (rank == 0) {
		MPI_Put(&zero, 1, MPI_DOUBLE_INT, 0, at(memory, 0, 100), 1, MPI_DOUBLE_INT, memory->win);
		MPI_Put(&small_zero, 1, MPI_SHORT_INT, 0, at(memory, 0, 108), 1, MPI_SHORT_INT, memory->win);
	}
	MPI_Rput(from, 4, MPI_INT, target, at(memory, target, 0), 4, MPI_INT, memory->win, &request[0]);
	MPI_Wait(&request[0], MPI_STATUS_IGNORE);
	MPI_Win_flush_all(memory->win);
	MPI_Raccumulate(from, 4, MPI_INT, target, at(memory, target, 0), 4, MPI_INT, MPI_PROD, memory->win, &request[0]);
	MPI_Rget_accumulate(from, 4, MPI_INT, old, 4, MPI_INT, target, at(memory, target, 0), 4, MPI_INT, MPI_REPLACE, memory->win,
			    &request[1]);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 4; i++)
		CHECK(old[i] == from[i] * from[i]);
	MPI_Rget(to, 4, MPI_INT, target, at(memory, target, 0), 4, MPI_INT, memory->win, &request[2]);
	MPI_Rget(to, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, memory->win, &request[3]);
	MPI_Waitall(2, request + 2, MPI_STATUSES_IGNORE);
	CHECK(memcmp(from, to, sizeof to) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, at(memory, 0, 100), 1, MPI_DOUBLE_INT, MPI_MAXLOC, memory->win);
	MPI_Accumulate(&small, 1, MPI_SHORT_INT, 0, at(memory, 0, 108), 1, MPI_SHORT_INT, MPI_MINLOC, memory->win);
	MPI_Win_flush_all(memory->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get(&found, 1, MPI_DOUBLE_INT, 0, at(memory, 0, 100), 1, MPI_DOUBLE_INT, memory->win);
	MPI_Fetch_and_op(NULL, &small_found, MPI_SHORT_INT, 0, at(memory, 0, 108), MPI_NO_OP, memory->win);
	MPI_Win_unlock_all(memory->win);
	CHECK(found.value == size - 0.5 && found.index == size - 1);
	CHECK(small_found.value == 1 - size && small_found.index == size - 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Accumulates of one origin take effect in order, also if they are long. */
static void order(struct memory *memory)
{
	int n = AREA, target = (rank + 1) % size, *from = malloc((size_t)n * sizeof *from), last = 0;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, memory->win);
	for (int i = 0; i < 20; i++) {
		numbers(from, n, i);
		MPI_Accumulate(from, n, MPI_INT, target, at(memory, target, 0), n, MPI_INT, MPI_REPLACE, memory->win);
		last = i * 7;
		MPI_Accumulate(&last, 1, MPI_INT, target, at(memory, target, (size_t)n - 1), 1, MPI_INT, MPI_REPLACE, memory->win);
		MPI_Win_flush_local(target, memory->win);
	}
	MPI_Get_accumulate(NULL, 0, MPI_INT, from, n, MPI_INT, target, at(memory, target, 0), n, MPI_INT, MPI_NO_OP, memory->win);
	MPI_Win_unlock(target, memory->win);
	CHECK(numbered(from, n - 1, 19) && from[n - 1] == last);
	free(from);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void window_test(enum flavor flavor)
{
	struct memory memory = window_make(flavor, (size_t)AREA * (size_t)size);
	for (enum sync sync = 0; sync < SYNCS; sync++) {
		put_and_get(&memory, sync, 1, AREA);
		put_and_get(&memory, sync, AREA, AREA);
		memset(memory.base, 0, (size_t)AREA * (size_t)size * sizeof(int));
		MPI_Barrier(MPI_COMM_WORLD);
		derived(&memory, sync, AREA / 3);
		memset(memory.base, 0, (size_t)AREA * (size_t)size * sizeof(int));
		MPI_Barrier(MPI_COMM_WORLD);
		derived(&memory, sync, 2);
		sums(&memory, sync, 1);
		sums(&memory, sync, AREA / 2);
	}
	counters(&memory, 100);
	requests(&memory);
	order(&memory);
	window_end(&memory);
	memory = window_make(flavor, (size_t)LARGE * (size_t)size);
	for (enum sync sync = 0; sync < SYNCS; sync++)
		put_and_get(&memory, sync, LARGE, LARGE);
	sums(&memory, LOCK_ALL, LARGE / 2);
	window_end(&memory);
}

/* Loads and stores in the shared memory of other ranks. */
static void shared_test(void)
{
	MPI_Win win;
	int *mine, *other, unit;
	MPI_Aint bytes;
	MPI_Win_allocate_shared((rank + 1) * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other);
	CHECK(bytes == sizeof(int) && unit == sizeof(int));
	/* The memory of the ranks is contiguous. */
	CHECK(other + rank * (rank + 1) / 2 == mine);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	for (int i = 0; i <= rank; i++)
		mine[i] = rank * 100 + i;
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	for (int r = 0; r < size; r++) {
		MPI_Win_shared_query(win, r, &bytes, &unit, &other);
		CHECK(bytes == (r + 1) * (MPI_Aint)sizeof(int));
		for (int i = 0; i <= r; i++)
			CHECK(other[i] == r * 100 + i);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/* Memory of MPI_Win_create: MPI_PROC_NULL means rank 0 everywhere, and only rank 0 can address it. */
static void private_test(void)
{
	MPI_Win win;
	int mine[8], *other, unit;
	MPI_Aint bytes, own = (rank + 1) * (MPI_Aint)sizeof(int);
	MPI_Win_create(mine, rank < 8 ? own : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other);
	CHECK(rank ? !bytes || bytes == sizeof(int) : bytes == sizeof(int) && other == mine);
	MPI_Win_free(&win);
}

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static void errors_test(void)
{
	struct memory memory = window_make(CREATE, 8);
	MPI_Win win = memory.win;
	int value = 0, flag;
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	CHECK(class_of(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_unlock(0, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_unlock_all(win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_complete(win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_wait(win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_test(win, &flag)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_flush(0, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_lock(5, 0, 0, win)) == MPI_ERR_LOCKTYPE);
	CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win)) == MPI_ERR_RANK);
	CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win)) == MPI_ERR_ASSERT);
	CHECK(class_of(MPI_Win_attach(win, &value, 4)) == MPI_ERR_RMA_FLAVOR);
	CHECK(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
	CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_fence(0, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_free(&win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win)) == MPI_ERR_RANK);
	CHECK(class_of(MPI_Put(&value, 1, MPI_INT, 0, 8, 1, MPI_INT, win)) == MPI_ERR_RMA_RANGE);
	CHECK(class_of(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win)) == MPI_ERR_DISP);
	CHECK(class_of(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_CHAR, win)) == MPI_ERR_TRUNCATE);
	CHECK(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win)) == MPI_ERR_OP);
	CHECK(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MAXLOC, win)) == MPI_ERR_OP);
	CHECK(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win)) == MPI_ERR_TYPE);
	CHECK(class_of(MPI_Compare_and_swap(&value, &value, &value, MPI_FLOAT, 0, 0, win)) == MPI_ERR_TYPE);
	CHECK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 99, 1, MPI_INT, win) == MPI_SUCCESS);
	CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS);
	window_end(&memory);

	memory = window_make(DYNAMIC, 8);
	win = memory.win;
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	CHECK(class_of(MPI_Win_attach(win, memory.base + 1, 4)) == MPI_ERR_RMA_ATTACH);
	CHECK(class_of(MPI_Win_detach(win, memory.base + 1)) == MPI_ERR_RMA_ATTACH);
	int target = (rank + 1) % size, old = 0;
	MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
	/* Another process reports the address when it sees the operation. */
	int code = MPI_Put(&value, 1, MPI_INT, target, at(&memory, target, 8), 1, MPI_INT, win);
	CHECK(class_of(code ? code : MPI_Win_flush(target, win)) == MPI_ERR_RMA_RANGE);
	code = MPI_Fetch_and_op(&value, &old, MPI_INT, target, at(&memory, target, 8), MPI_SUM, win);
	CHECK(class_of(code ? code : MPI_Win_flush(target, win)) == MPI_ERR_RMA_RANGE);
	CHECK(MPI_Win_unlock(target, win) == MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	window_end(&memory);
}

static void attributes_test(void)
{
	struct memory memory = window_make(CREATE, 8);
	void *value, *base;
	int found, len;
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Group group;
	MPI_Win_get_attr(memory.win, MPI_WIN_BASE, &base, &found);
	CHECK(found && base == memory.base);
	MPI_Win_get_attr(memory.win, MPI_WIN_SIZE, &value, &found);
	CHECK(found && *(MPI_Aint *)value == 8 * sizeof(int));
	MPI_Win_get_attr(memory.win, MPI_WIN_DISP_UNIT, &value, &found);
	CHECK(found && *(int *)value == sizeof(int));
	MPI_Win_get_attr(memory.win, MPI_WIN_CREATE_FLAVOR, &value, &found);
	CHECK(found && *(int *)value == MPI_WIN_FLAVOR_CREATE);
	MPI_Win_get_attr(memory.win, MPI_WIN_MODEL, &value, &found);
	CHECK(found && *(int *)value == MPI_WIN_UNIFIED);
	MPI_Win_set_name(memory.win, "a window");
	MPI_Win_get_name(memory.win, name, &len);
	CHECK(len == 8 && strcmp(name, "a window") == 0);
	MPI_Win_get_group(memory.win, &group);
	MPI_Group_compare(group, all, &found);
	CHECK(found == MPI_IDENT);
	MPI_Group_free(&group);
	MPI_Info info;
	MPI_Win_get_info(memory.win, &info);
	len = sizeof name;
	MPI_Info_get_string(info, "no_locks", &len, name, &found);
	CHECK(found && strcmp(name, "false") == 0);
	MPI_Info_free(&info);
	window_end(&memory);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	attributes_test();
	errors_test();
	shared_test();
	private_test();
	for (enum flavor flavor = 0; flavor < FLAVORS; flavor++)
		window_test(flavor);
	MPI_Group_free(&all);
	MPI_Finalize();
	return 0;
}
