/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations: MPI 5.0, section 6.9. */
#ifndef ADI_COLLECTIVE_OP_H
#define ADI_COLLECTIVE_OP_H

#include "adi/datatype/type.h"

struct adi_op {
	struct adi_object object;
	bool commutative;
	enum { ADI_OP_PREDEFINED, ADI_OP_INT, ADI_OP_COUNT, ADI_OP_FORTRAN } form; /* what the program's function takes */
	union {
		MPI_User_function *small;
		MPI_User_function_c *large;
		void (*fortran)(void *in, void *inout, int *len, int *type); /* type: Fortran's integer of the datatype */
	} call; /* of the program */
};

int adi_op_take(MPI_Op handle, const char *argument, struct adi_op **found);
void adi_op_release(struct adi_op *op);
static inline MPI_Op adi_op_handle(struct adi_op *op)
{
	return (MPI_Op)adi_object_handle(&op->object);
}
/* An op of the program; the caller then sets its function. NULL: no memory. */
struct adi_op *adi_op_new(int form, bool commutative);
/* Whether reductions with op are defined for the datatype: a predefined op needs elements of a kind that it has, and MPI_REPLACE
 * and MPI_NO_OP are of windows only. Returns an error class. */
int adi_op_check(const struct adi_op *op, const struct adi_type *type);
/* inout[i] = in[i] op inout[i] for count elements of a datatype for which adi_op_check succeeds. */
void adi_op_apply(struct adi_op *op, const void *in, void *inout, MPI_Count count, struct adi_type *type);
/* The same for n elements of a basic kind, one behind the other, at addresses that the kind's alignment allows. op is predefined
 * and defined for the kind. MPI_REPLACE copies, MPI_NO_OP does nothing; both are defined for all kinds. */
void adi_op_apply_basic(const struct adi_op *op, enum adi_basic basic, const void *in, void *inout, size_t n);
bool adi_op_defined(const struct adi_op *op, enum adi_basic basic);

#endif
