/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a datatype, and its properties: MPI 5.0, section 5.1. */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/datatype/build.h"

#include <stdlib.h>
#include <string.h>

struct adi_type_contents *adi_contents_new(int combiner, bool large, MPI_Count n, MPI_Count parts, int lists)
{
	struct adi_type_contents *contents = calloc(1, sizeof *contents);
	if (!contents)
		return NULL;
	*contents = (struct adi_type_contents){ .references = 1, .combiner = combiner, .large = large, .n = n, .length = 1,
						.unit = 1, .parts = parts };
	size_t some = n ? (size_t)n : 1;
	contents->part = calloc(parts ? (size_t)parts : 1, sizeof *contents->part);
	bool failed = !contents->part;
	if (lists & ADI_LENGTHS)
		failed |= !(contents->lengths = calloc(some, sizeof *contents->lengths));
	if (lists & ADI_DISPLACEMENTS)
		failed |= !(contents->displacements = calloc(some, sizeof *contents->displacements));
	if (failed) {
		adi_contents_release(contents);
		return NULL;
	}
	return contents;
}

void adi_contents_part(struct adi_type_contents *contents, MPI_Count i, struct adi_type *part)
{
	adi_object_retain(&part->object);
	contents->part[i] = part;
}

void adi_contents_release(struct adi_type_contents *contents)
{
	if (!contents || --contents->references > 0)
		return;
	for (MPI_Count i = 0; contents->part && i < contents->parts; i++)
		if (contents->part[i])
			adi_type_release(contents->part[i]);
	if (contents->old)
		adi_type_release(contents->old);
	free(contents->part);
	free(contents->lengths);
	free(contents->displacements);
	free(contents->arguments);
	free(contents->sizes);
	free(contents);
}

void adi_type_release(struct adi_type *type)
{
	if (!adi_object_release(&type->object))
		return;
	adi_layout_release(type->layout);
	adi_contents_release(type->contents);
	free(type);
}

bool adi_type_freeable(const struct adi_type *type)
{
	int combiner = type->contents ? type->contents->combiner : MPI_COMBINER_NAMED;
	return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL && combiner != MPI_COMBINER_F90_COMPLEX &&
	       combiner != MPI_COMBINER_F90_INTEGER;
}

struct adi_type *adi_type_twin(struct adi_type *type)
{
	struct adi_type *twin = malloc(sizeof *twin);
	if (!twin)
		return NULL;
	*twin = *type;
	adi_object_init(&twin->object, ADI_TYPE);
	twin->name[0] = 0;
	twin->attributes = (struct adi_attributes){ 0 };
	if (twin->contents)
		twin->contents->references++;
	if (twin->layout)
		twin->layout->references++;
	return twin;
}

int mpi_type_dup(struct adi_type *oldtype, MPI_Datatype *newtype)
{
	struct adi_type_contents *contents = adi_contents_new(MPI_COMBINER_DUP, false, 1, 1, 0);
	if (contents)
		adi_contents_part(contents, 0, oldtype);
	struct adi_type *made;
	*newtype = MPI_DATATYPE_NULL;
	int class = adi_type_make(contents, &made);
	if (class)
		return class;
	made->committed = oldtype->committed;
	class = adi_attributes_copy(&oldtype->object, &oldtype->attributes, &made->attributes);
	if (class) {
		adi_attributes_delete(&made->object, &made->attributes);
		adi_type_release(made);
		return class;
	}
	*newtype = adi_type_handle(made);
	return MPI_SUCCESS;
}

int mpi_type_commit(MPI_Datatype *datatype)
{
	struct adi_type *type;
	int class = adi_type_take(*datatype, "datatype", &type);
	if (class || type->committed)
		return class;
	if (!type->contiguous)
		class = adi_layout_compile(type);
	if (!class)
		type->committed = true;
	return class;
}

int mpi_type_free(MPI_Datatype *datatype)
{
	struct adi_type *type;
	int class = adi_type_take(*datatype, "datatype", &type);
	if (class)
		return class;
	if (!adi_type_freeable(type))
		return adi_error(MPI_ERR_TYPE, "datatype is %s; valid: derived datatypes",
				 type->name[0] ? type->name : "a predefined datatype of MPI_Type_create_f90_*");
	class = adi_attributes_delete(&type->object, &type->attributes);
	if (class)
		return class;
	adi_type_release(type);
	*datatype = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

/* The null handle has a name too. */
int mpi_type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
	struct adi_type *type;
	const char *name = "MPI_DATATYPE_NULL";
	if (datatype != MPI_DATATYPE_NULL) {
		int class = adi_type_take(datatype, "datatype", &type);
		if (class)
			return class;
		name = type->name;
	}
	size_t len = strlen(name);
	memcpy(type_name, name, len + 1);
	*resultlen = (int)len;
	return MPI_SUCCESS;
}

int mpi_type_set_name(struct adi_type *datatype, const char *type_name)
{
	size_t len = strnlen(type_name, sizeof datatype->name - 1);
	memcpy(datatype->name, type_name, len);
	datatype->name[len] = 0;
	return MPI_SUCCESS;
}

int mpi_type_size(struct adi_type *datatype, MPI_Count *size)
{
	*size = datatype->size;
	return MPI_SUCCESS;
}

int mpi_type_get_extent(struct adi_type *datatype, MPI_Count *lb, MPI_Count *extent)
{
	*lb = datatype->lb;
	*extent = datatype->extent;
	return MPI_SUCCESS;
}

int mpi_type_get_true_extent(struct adi_type *datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
	*true_lb = datatype->true_lb;
	*true_extent = datatype->true_extent;
	return MPI_SUCCESS;
}

int mpi_get_address(const void *location, MPI_Aint *address)
{
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}

MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
	return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}
ADI_PROFILED(Aint_add);

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
	return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
ADI_PROFILED(Aint_diff);
