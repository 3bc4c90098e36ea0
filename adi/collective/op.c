/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations: objects, checks, functions of the program. The predefined operations compute in kernels.c. */
#include "adi/collective/op.h"
#include "adi/bindings/functions.h"
#include "adi/collective/kernels.h"
#include "adi/core/entry.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define OP(constant_) { .object = { .magic = ADI_MAGIC + ADI_OP, .references = 1, .constant = (constant_) }, .commutative = true }

/* By the handle's constant less ADI_OPS_FIRST: MPI 5.0, appendix A. MPI_REPLACE and MPI_NO_OP do not commute. */
static struct adi_op predefined[ADI_OPS] = {
	[ADI_SUM] = OP(ADI_OPS_FIRST + ADI_SUM),       [ADI_MIN] = OP(ADI_OPS_FIRST + ADI_MIN),
	[ADI_MAX] = OP(ADI_OPS_FIRST + ADI_MAX),       [ADI_PROD] = OP(ADI_OPS_FIRST + ADI_PROD),
	[ADI_BAND] = OP(ADI_OPS_FIRST + ADI_BAND),     [ADI_BOR] = OP(ADI_OPS_FIRST + ADI_BOR),
	[ADI_BXOR] = OP(ADI_OPS_FIRST + ADI_BXOR),     [ADI_LAND] = OP(ADI_OPS_FIRST + ADI_LAND),
	[ADI_LOR] = OP(ADI_OPS_FIRST + ADI_LOR),       [ADI_LXOR] = OP(ADI_OPS_FIRST + ADI_LXOR),
	[ADI_MINLOC] = OP(ADI_OPS_FIRST + ADI_MINLOC), [ADI_MAXLOC] = OP(ADI_OPS_FIRST + ADI_MAXLOC),
	[ADI_REPLACE] = { .object = { .magic = ADI_MAGIC + ADI_OP, .references = 1, .constant = ADI_OPS_FIRST + ADI_REPLACE } },
	[ADI_NO_OP] = { .object = { .magic = ADI_MAGIC + ADI_OP, .references = 1, .constant = ADI_OPS_FIRST + ADI_NO_OP } },
};

static const char *const names[ADI_OPS] = {
	[ADI_SUM] = "MPI_SUM", [ADI_MIN] = "MPI_MIN", [ADI_MAX] = "MPI_MAX", [ADI_PROD] = "MPI_PROD",
	[ADI_BAND] = "MPI_BAND", [ADI_BOR] = "MPI_BOR", [ADI_BXOR] = "MPI_BXOR",
	[ADI_LAND] = "MPI_LAND", [ADI_LOR] = "MPI_LOR", [ADI_LXOR] = "MPI_LXOR",
	[ADI_MINLOC] = "MPI_MINLOC", [ADI_MAXLOC] = "MPI_MAXLOC", [ADI_REPLACE] = "MPI_REPLACE", [ADI_NO_OP] = "MPI_NO_OP",
};

static enum adi_predefined_op number_of(const struct adi_op *op)
{
	return (enum adi_predefined_op)(op - predefined);
}

/* ---- objects ---- */

int adi_op_take(MPI_Op handle, const char *argument, struct adi_op **found)
{
	uintptr_t value = (uintptr_t)handle;
	struct adi_op *op = NULL;
	if (value - ADI_OPS_FIRST < ADI_OPS)
		op = names[value - ADI_OPS_FIRST] ? &predefined[value - ADI_OPS_FIRST] : NULL;
	else
		op = adi_object_at(handle, ADI_OP);
	if (!op)
		return adi_error(MPI_ERR_OP, "%s is %s; valid: an operation", argument,
				 handle == MPI_OP_NULL ? "MPI_OP_NULL" : "no operation");
	*found = op;
	return MPI_SUCCESS;
}

struct adi_op *adi_op_new(int form, bool commutative)
{
	struct adi_op *op = calloc(1, sizeof *op);
	if (!op)
		return NULL;
	adi_object_init(&op->object, ADI_OP);
	op->form = form;
	op->commutative = commutative;
	return op;
}

void adi_op_release(struct adi_op *op)
{
	if (adi_object_release(&op->object))
		free(op);
}

/* ---- checks ---- */

/* The kind of the elements, if they lie one behind the other: ADI_BASIC_NONE if they do not. */
static enum adi_basic elements_of(const struct adi_type *type)
{
	if (!type->contents || type->contiguous)
		return type->basic;
	return ADI_BASIC_NONE;
}

bool adi_op_defined(const struct adi_op *op, enum adi_basic basic)
{
	return op->form == ADI_OP_PREDEFINED && basic != ADI_BASIC_NONE && adi_kernels[number_of(op)][basic];
}

int adi_op_check(const struct adi_op *op, const struct adi_type *type)
{
	if (op->form != ADI_OP_PREDEFINED)
		return MPI_SUCCESS;
	enum adi_predefined_op number = number_of(op);
	if (number == ADI_REPLACE || number == ADI_NO_OP)
		return adi_error(MPI_ERR_OP, "op is %s, which is only for one-sided communication", names[number]);
	if (adi_op_defined(op, elements_of(type)))
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_OP, "op %s is not defined for datatype %s", names[number],
			 type->name[0] ? type->name : "(a derived datatype)");
}

/* ---- computing ---- */

void adi_op_apply_basic(const struct adi_op *op, enum adi_basic basic, const void *in, void *inout, size_t n)
{
	adi_kernels[number_of(op)][basic](in, inout, n);
}

/* A function that takes int is called for at most INT_MAX elements at a time. */
static void call_small(const struct adi_op *op, const char *in, char *inout, MPI_Count count, struct adi_type *type)
{
	MPI_Datatype handle = adi_type_handle(type);
	int number = op->form == ADI_OP_FORTRAN ? adi_object_number(&type->object) : 0;
	while (count > 0) {
		int len = count < INT_MAX ? (int)count : INT_MAX, asked = len;
		if (op->form == ADI_OP_FORTRAN)
			op->call.fortran((void *)in, inout, &asked, &number);
		else
			op->call.small((void *)in, inout, &asked, &handle);
		in += len * type->extent;
		inout += len * type->extent;
		count -= len;
	}
}

static void call_large(const struct adi_op *op, const void *in, void *inout, MPI_Count count, struct adi_type *type)
{
	MPI_Datatype handle = adi_type_handle(type);
	if (count > 0)
		op->call.large((void *)in, inout, &count, &handle);
}

void adi_op_apply(struct adi_op *op, const void *in, void *inout, MPI_Count count, struct adi_type *type)
{
	if (op->form == ADI_OP_COUNT) {
		call_large(op, in, inout, count, type);
	} else if (op->form != ADI_OP_PREDEFINED) {
		call_small(op, in, inout, count, type);
	} else {
		MPI_Count n = type->contents ? count * type->size / (MPI_Count)adi_basic_size(type->basic) : count;
		adi_op_apply_basic(op, type->basic, (const char *)in + type->true_lb, (char *)inout + type->true_lb, (size_t)n);
	}
}

/* ---- MPI functions ---- */

static int create(void (*function)(void), int form, int commute, MPI_Op *handle)
{
	int class = adi_check_pointer((void *)(uintptr_t)function, "user_fn");
	if (!class)
		class = adi_check_pointer(handle, "op");
	if (class)
		return class;
	struct adi_op *op = adi_op_new(form, commute);
	if (!op)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an operation");
	if (form == ADI_OP_COUNT)
		op->call.large = (MPI_User_function_c *)function;
	else
		op->call.small = (MPI_User_function *)function;
	*handle = adi_op_handle(op);
	return MPI_SUCCESS;
}

static int enter_and_create(void (*function)(void), int form, int commute, MPI_Op *op, const char *name)
{
	int class = adi_enter();
	if (class)
		return adi_fail(NULL, name, class);
	class = create(function, form, commute, op);
	if (class)
		class = adi_fail(NULL, name, class);
	adi_leave();
	return class;
}

int PMPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
	return enter_and_create((void (*)(void))user_fn, ADI_OP_INT, commute, op, "Op_create");
}
ADI_PROFILED(Op_create);

int PMPI_Op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
	return enter_and_create((void (*)(void))user_fn, ADI_OP_COUNT, commute, op, "Op_create_c");
}
ADI_PROFILED(Op_create_c);

int mpi_op_free(MPI_Op *handle)
{
	struct adi_op *op = NULL;
	int class = adi_op_take(*handle, "op", &op);
	if (class)
		return class;
	if (op->form == ADI_OP_PREDEFINED)
		return adi_error(MPI_ERR_OP, "op is the predefined %s, which cannot be freed", names[number_of(op)]);
	adi_op_release(op);
	*handle = MPI_OP_NULL;
	return MPI_SUCCESS;
}

int mpi_op_commutative(struct adi_op *op, int *commute)
{
	*commute = op->commutative;
	return MPI_SUCCESS;
}

int mpi_reduce_local(const void *in, void *inout, MPI_Count count, MPI_Datatype datatype, struct adi_op *op)
{
	struct adi_type *type;
	int class = adi_check_count(count, "count");
	if (!class)
		class = adi_type_take_committed(datatype, "datatype", &type);
	if (!class)
		class = adi_op_check(op, type);
	if (!class && (in == MPI_IN_PLACE || inout == MPI_IN_PLACE))
		class = adi_error(MPI_ERR_BUFFER, "a buffer is MPI_IN_PLACE; this is not valid in MPI_Reduce_local");
	if (!class && (adi_type_lacks_buffer(in, count, type) || adi_type_lacks_buffer(inout, count, type)))
		class = adi_error(MPI_ERR_BUFFER, "%s is NULL, count is %lld", in ? "inoutbuf" : "inbuf", (long long)count);
	if (!class && count > 0 && in == inout && !type->contents)
		class = adi_error(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same buffer");
	if (!class && count > 0)
		adi_op_apply(op, in, inout, count, type);
	return class;
}
