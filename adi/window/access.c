/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Put, MPI_Get, MPI_Accumulate and the like: arguments, and the choice of the way to the target. */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/window/internal.h"

#include <inttypes.h>

/* ---- checks ---- */

static int range_error(const struct adi_win *win, int rank, MPI_Aint disp, MPI_Count bytes)
{
	return adi_error(MPI_ERR_RMA_RANGE,
			 "target_disp %" PRId64 " and %" PRId64 " bytes lie outside the memory of rank %d, %" PRId64
			 " bytes in units of %" PRId64, (int64_t)disp, (int64_t)bytes, rank, (int64_t)win->target[rank].size,
			 (int64_t)win->target[rank].disp_unit);
}

/* Computes args->offset, and checks that the target's data lie in its memory. */
static int place_check(const struct adi_win *win, struct window_access_args *args, MPI_Aint disp)
{
	const struct adi_win_target *target = &win->target[args->rank];
	MPI_Count first, extent, end, bytes;
	bool dynamic = win->flavor == MPI_WIN_FLAVOR_DYNAMIC;
	if (!dynamic && disp < 0)
		return adi_error(MPI_ERR_DISP, "target_disp is %" PRId64 "; valid: 0 and above", (int64_t)disp);
	if (__builtin_mul_overflow(args->count, args->type->extent, &extent))
		return adi_error(MPI_ERR_COUNT, "target_count %" PRId64 " times the extent of the datatype is too large",
				 (int64_t)args->count);
	first = args->type->true_lb;
	bytes = args->type->contiguous ? extent : adi_type_span(args->type, args->count, &first);
	if (dynamic) {
		args->offset = disp;
		if (args->rank != win->comm->rank || window_attached(win, (char *)(uintptr_t)disp + first, bytes))
			return MPI_SUCCESS;
		return adi_error(MPI_ERR_RMA_RANGE, "no attached memory at address %#" PRIx64 ", %" PRId64 " bytes", (int64_t)disp,
				 (int64_t)bytes);
	}
	if (__builtin_mul_overflow((MPI_Count)disp, (MPI_Count)target->disp_unit, &args->offset) ||
	    __builtin_add_overflow((MPI_Count)args->offset, first, &first) || first < 0 ||
	    __builtin_add_overflow(first, bytes, &end) || end > target->size)
		return range_error(win, args->rank, disp, bytes);
	return MPI_SUCCESS;
}

static int fit_error(MPI_Count from, MPI_Count to)
{
	return adi_error(MPI_ERR_TRUNCATE, "%" PRId64 " bytes of data do not fit into %" PRId64 " bytes", (int64_t)from,
			 (int64_t)to);
}

/* An operation without an effect. */
static int nothing(const struct window_access_args *args)
{
	if (!args->request)
		return MPI_SUCCESS;
	struct adi_request *request = adi_request_done();
	if (!request)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a request");
	*args->request = adi_request_handle(request);
	return MPI_SUCCESS;
}

/* The request of an operation that is complete already. */
static int done(const struct window_access_args *args, int class)
{
	return class ? class : nothing(args);
}

/* Checks rank and epoch. *skip: the operation has no effect. */
static int begin(struct adi_win *win, struct window_access_args *args, bool *skip)
{
	*skip = args->rank == MPI_PROC_NULL;
	if (*skip)
		return MPI_SUCCESS;
	if (!ADI_LIKELY(args->rank >= 0 && args->rank < win->comm->size))
		return adi_error(MPI_ERR_RANK, "target_rank is %d; valid ranks: 0 to %d", args->rank, win->comm->size - 1);
	*skip = args->count == 0 || args->type->size == 0;
	return window_may_access(win, args->rank, args->request != NULL);
}

static int no_buffer(const char *argument, MPI_Count count)
{
	return adi_error(MPI_ERR_BUFFER, "%s is NULL; valid: the address of %" PRId64 " elements", argument, (int64_t)count);
}

/* ---- put and get ---- */

static int put(struct adi_win *win, struct window_access_args *args, MPI_Aint disp)
{
	bool skip;
	MPI_Count bytes = args->origin_count * args->origin_type->size;
	int class = begin(win, args, &skip);
	if (class)
		return class;
	if (skip && args->rank != MPI_PROC_NULL && bytes > 0)
		return fit_error(bytes, 0);
	if (skip || bytes == 0)
		return nothing(args);
	class = place_check(win, args, disp);
	if (!class && adi_type_lacks_buffer(args->origin, args->origin_count, args->origin_type))
		class = no_buffer("origin_addr", args->origin_count);
	if (class)
		return class;
	if (bytes > args->count * args->type->size)
		return fit_error(bytes, args->count * args->type->size);
	return window_is_local(win, args->rank) ? done(args, window_local_put(win, args)) : window_remote_put(win, args);
}

static int get(struct adi_win *win, struct window_access_args *args, MPI_Aint disp)
{
	bool skip;
	int class = begin(win, args, &skip);
	if (class)
		return class;
	if (skip)
		return nothing(args);
	class = place_check(win, args, disp);
	if (!class && adi_type_lacks_buffer(args->result, args->result_count, args->result_type))
		class = no_buffer("origin_addr", args->result_count);
	if (class)
		return class;
	if (args->count * args->type->size > args->result_count * args->result_type->size)
		return fit_error(args->count * args->type->size, args->result_count * args->result_type->size);
	return window_is_local(win, args->rank) ? done(args, window_local_get(win, args)) : window_remote_get(win, args);
}

int mpi_put(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank,
	    MPI_Aint target_disp, MPI_Count target_count, struct adi_type *target_datatype, struct adi_win *win)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype };
	return put(win, &args, target_disp);
}

int mpi_rput(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank,
	     MPI_Aint target_disp, MPI_Count target_count, struct adi_type *target_datatype, struct adi_win *win,
	     MPI_Request *request)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype,
					   .request = request };
	return put(win, &args, target_disp);
}

int mpi_get(void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank, MPI_Aint target_disp,
	    MPI_Count target_count, struct adi_type *target_datatype, struct adi_win *win)
{
	struct window_access_args args = { .result = origin_addr, .result_count = origin_count, .result_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype };
	return get(win, &args, target_disp);
}

int mpi_rget(void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank, MPI_Aint target_disp,
	     MPI_Count target_count, struct adi_type *target_datatype, struct adi_win *win, MPI_Request *request)
{
	struct window_access_args args = { .result = origin_addr, .result_count = origin_count, .result_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype,
					   .request = request };
	return get(win, &args, target_disp);
}

/* ---- accumulate ---- */

static bool is_op(const struct adi_op *op, MPI_Op handle)
{
	return op->object.constant == (uintptr_t)handle;
}

/* Checks operation and datatypes, and sets args->basic. An operation that only fetches has no data of the origin. */
static int accumulate_check(struct window_access_args *args)
{
	bool no_op = is_op(args->op, MPI_NO_OP);
	if (!args->op->object.constant || (no_op && !args->fetches))
		return adi_error(MPI_ERR_OP, "op is %s; valid: a predefined operation that the function has",
				 no_op ? "MPI_NO_OP" : "an operation of the program");
	args->basic = args->type->basic;
	if (window_basic_size(args->basic) == 0)
		return adi_error(MPI_ERR_TYPE, "the target's datatype \"%s\" has elements of different predefined types",
				 args->type->name);
	args->sends = !no_op;
	if (no_op)
		return MPI_SUCCESS;
	if (args->origin_type->basic != args->basic)
		return adi_error(MPI_ERR_TYPE, "the elements of datatypes \"%s\" and \"%s\" are not of the same predefined type",
				 args->origin_type->name, args->type->name);
	if (!adi_op_defined(args->op, args->basic))
		return adi_error(MPI_ERR_OP, "op is not defined for the elements of datatype \"%s\"", args->type->name);
	return MPI_SUCCESS;
}

/* The data of origin and target must have the same length: an accumulate changes all elements of the target. */
static int accumulate_sizes(const struct window_access_args *args)
{
	MPI_Count bytes = args->count * args->type->size;
	if (args->sends && args->origin_count * args->origin_type->size != bytes)
		return adi_error(MPI_ERR_COUNT, "origin and target have %" PRId64 " and %" PRId64 " bytes; valid: the same",
				 (int64_t)(args->origin_count * args->origin_type->size), (int64_t)bytes);
	if (args->fetches && args->result_count * args->result_type->size < bytes)
		return fit_error(bytes, args->result_count * args->result_type->size);
	return MPI_SUCCESS;
}

static int accumulate(struct adi_win *win, struct window_access_args *args, MPI_Aint disp)
{
	bool skip;
	int class = begin(win, args, &skip);
	if (class)
		return class;
	if (skip)
		return nothing(args);
	class = accumulate_check(args);
	if (!class)
		class = place_check(win, args, disp);
	if (!class)
		class = accumulate_sizes(args);
	if (!class && args->sends && adi_type_lacks_buffer(args->origin, args->origin_count, args->origin_type))
		class = no_buffer("origin_addr", args->origin_count);
	if (!class && args->fetches && adi_type_lacks_buffer(args->result, args->result_count, args->result_type))
		class = no_buffer("result_addr", args->result_count);
	if (class)
		return class;
	return window_is_local(win, args->rank) ? done(args, window_local_accumulate(win, args)) :
						  window_remote_accumulate(win, args);
}

int mpi_accumulate(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank,
		   MPI_Aint target_disp, MPI_Count target_count, struct adi_type *target_datatype, struct adi_op *op,
		   struct adi_win *win)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype, .op = op };
	return accumulate(win, &args, target_disp);
}

int mpi_raccumulate(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, int target_rank,
		    MPI_Aint target_disp, MPI_Count target_count, struct adi_type *target_datatype, struct adi_op *op,
		    struct adi_win *win, MPI_Request *request)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype, .op = op,
					   .request = request };
	return accumulate(win, &args, target_disp);
}

int mpi_get_accumulate(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, void *result_addr,
		       MPI_Count result_count, struct adi_type *result_datatype, int target_rank, MPI_Aint target_disp,
		       MPI_Count target_count, struct adi_type *target_datatype, struct adi_op *op, struct adi_win *win)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .result = result_addr, .result_count = result_count, .result_type = result_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype, .op = op,
					   .fetches = true };
	return accumulate(win, &args, target_disp);
}

int mpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count, struct adi_type *origin_datatype, void *result_addr,
			MPI_Count result_count, struct adi_type *result_datatype, int target_rank, MPI_Aint target_disp,
			MPI_Count target_count, struct adi_type *target_datatype, struct adi_op *op, struct adi_win *win,
			MPI_Request *request)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = origin_count, .origin_type = origin_datatype,
					   .result = result_addr, .result_count = result_count, .result_type = result_datatype,
					   .rank = target_rank, .count = target_count, .type = target_datatype, .op = op,
					   .fetches = true, .request = request };
	return accumulate(win, &args, target_disp);
}

/* The short way for an integer of 4 or 8 bytes in a shared segment: one atomic operation. False: not done; the general way
 * finds out why. */
static bool fetch_directly(const void *data, void *result, const struct adi_type *type, int rank, MPI_Aint disp,
			   const struct adi_op *op, struct adi_win *win)
{
	MPI_Aint offset;
	bool simple = win->direct && (unsigned)rank < (unsigned)win->comm->size && window_lock_free(type->basic) && result &&
		      (data || is_op(op, MPI_NO_OP)) && type->object.constant && disp >= 0;
	if (!simple || __builtin_mul_overflow(disp, win->target[rank].disp_unit, &offset) ||
	    win->target[rank].size < (MPI_Aint)type->size || offset > win->target[rank].size - (MPI_Aint)type->size ||
	    !adi_op_defined(op, type->basic) || window_may_access(win, rank, false))
		return false;
	window_change_atomically(op, type->basic, win->target[rank].base + offset, data, result, (size_t)type->size);
	return true;
}

int mpi_fetch_and_op(const void *origin_addr, void *result_addr, struct adi_type *datatype, int target_rank, MPI_Aint target_disp,
		     struct adi_op *op, struct adi_win *win)
{
	if (fetch_directly(origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
		return MPI_SUCCESS;
	struct window_access_args args = { .origin = origin_addr, .origin_count = 1, .origin_type = datatype, .result = result_addr,
					   .result_count = 1, .result_type = datatype, .rank = target_rank, .count = 1,
					   .type = datatype, .op = op, .fetches = true };
	if (!datatype->object.constant)
		return adi_error(MPI_ERR_TYPE, "datatype \"%s\" is derived; valid: predefined datatypes", datatype->name);
	return accumulate(win, &args, target_disp);
}

int mpi_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, struct adi_type *datatype,
			 int target_rank, MPI_Aint target_disp, struct adi_win *win)
{
	struct window_access_args args = { .origin = origin_addr, .origin_count = 1, .origin_type = datatype, .result = result_addr,
					   .result_count = 1, .result_type = datatype, .rank = target_rank, .count = 1,
					   .type = datatype, .basic = datatype->basic };
	bool skip;
	bool exact = (datatype->basic >= ADI_BASIC_INT8 && datatype->basic <= ADI_BASIC_UINT64) ||
		     (datatype->basic >= ADI_BASIC_BOOL && datatype->basic <= ADI_BASIC_CHAR);
	if (!datatype->object.constant || !exact)
		return adi_error(MPI_ERR_TYPE, "datatype is \"%s\"; valid: predefined integer, logical and byte types",
				 datatype->name);
	int class = begin(win, &args, &skip);
	if (class || skip)
		return class;
	class = place_check(win, &args, target_disp);
	if (class)
		return class;
	if (!origin_addr || !compare_addr || !result_addr)
		return no_buffer(!origin_addr ? "origin_addr" : !compare_addr ? "compare_addr" : "result_addr", 1);
	return window_is_local(win, target_rank) ? window_local_swap(win, &args, compare_addr) :
						   window_remote_swap(win, &args, compare_addr);
}
