/* SPDX-License-Identifier: BSD-3-Clause */
/* How a derived datatype was constructed, and its layout: for adi/datatype alone. */
#ifndef ADI_DATATYPE_BUILD_H
#define ADI_DATATYPE_BUILD_H

#include "adi/core/array.h"
#include "adi/datatype/type.h"

/* Levels of derivation that a datatype may have. Functions that walk through the levels recurse. */
#define ADI_TYPE_DEPTH 1000

/*
 * The data of a derived datatype are n blocks, in order. Block i consists of lengths[i] (or length) elements of part[i] (or
 * part[0]), one behind the other by its extent. It starts displacements[i] (or i * stride) units behind the origin.
 */
struct adi_type_contents {
	int references; /* of types: the copies that MPI_Type_get_contents makes share it */
	int combiner;
	bool large;     /* constructed by a function whose name ends in _c */
	MPI_Count n;
	MPI_Count length, stride;
	MPI_Count *lengths, *displacements; /* [n], or NULL */
	MPI_Count unit;                     /* bytes */
	MPI_Count parts;                    /* 1 or n */
	struct adi_type **part;             /* [parts]; each holds a reference */
	struct adi_type *old;               /* subarray, darray: oldtype, of which part[0] was derived; else NULL */
	int *arguments;                     /* darray, F90: integer arguments in order; subarray: ndims and order; else NULL */
	MPI_Count *sizes;                   /* subarray: sizes, subsizes, starts; darray: gsizes; resized: lb, extent; else NULL */
};

struct adi_block {
	MPI_Count length, at; /* elements; bytes */
	struct adi_type *type;
};

static inline struct adi_block adi_contents_block(const struct adi_type_contents *contents, MPI_Count i)
{
	return (struct adi_block){
		.length = contents->lengths ? contents->lengths[i] : contents->length,
		.at = (contents->displacements ? contents->displacements[i] : i * contents->stride) * contents->unit,
		.type = contents->part[contents->parts == 1 ? 0 : i],
	};
}

/* Allocates contents of n blocks, with one element of part[0] at displacement 0 in each. lists: allocates lengths,
 * displacements. part[] are to be filled with adi_contents_part. NULL: no memory. */
enum { ADI_LENGTHS = 1, ADI_DISPLACEMENTS = 2 };
struct adi_type_contents *adi_contents_new(int combiner, bool large, MPI_Count n, MPI_Count parts, int lists);
/* Stores a part and retains it. */
void adi_contents_part(struct adi_type_contents *contents, MPI_Count i, struct adi_type *part);
void adi_contents_release(struct adi_type_contents *contents);
/* Makes a type, whose caller owns the reference. Takes over contents, also on failure; NULL contents: no memory. Returns an
 * error class. */
int adi_type_make(struct adi_type_contents *contents, struct adi_type **made);
/* Gives a type of explicit bounds. */
void adi_type_bound(struct adi_type *type, MPI_Count lb, MPI_Count extent);
/* Whether the program may free it: a derived type, but none of MPI_Type_create_f90_*. */
bool adi_type_freeable(const struct adi_type *type);
/* A second type with the same contents, without name and attributes. NULL: no memory. */
struct adi_type *adi_type_twin(struct adi_type *type);

/* Derived types for other constructors, with displacements and stride in bytes. Each returns an error class. */
int adi_type_vector(MPI_Count n, MPI_Count length, MPI_Count stride, struct adi_type *old, struct adi_type **made);
int adi_type_resized(struct adi_type *old, MPI_Count lb, MPI_Count extent, struct adi_type **made);

/*
 * A layout: the data of one element of a type in order, as a loop or list of children. A child is a run of bytes, or another
 * layout. The first byte of the data is the origin of all offsets.
 */
struct adi_layout {
	int references;
	MPI_Count first;  /* offset of the first byte from the origin of the type */
	size_t bytes;     /* of data */
	size_t count;     /* of children; 0: no data */
	MPI_Count stride; /* loop: bytes from child to child */
	size_t block;     /* bytes of data of each child; unused if start */
	MPI_Count *offset;            /* list: [count]; NULL: a loop */
	size_t *start;                /* list of different children: [count + 1], bytes of data before each; else NULL */
	struct adi_layout *child;     /* of which all children are; NULL: runs of bytes, or different ones */
	struct adi_layout **children; /* [count]: where they differ; an entry is NULL for a run of bytes. Else NULL */
};

/* Compiles type->layout if that was not done. Returns an error class. */
int adi_layout_compile(struct adi_type *type);
void adi_layout_release(struct adi_layout *layout);
static inline bool adi_layout_is_run(const struct adi_layout *layout)
{
	return layout->count == 1 && !layout->child && !layout->offset;
}

/* copy.c. child: the index of the child that has byte skip of the data; *begin: bytes of data before it. */
size_t adi_layout_child(const struct adi_layout *layout, size_t skip, size_t *begin);
/* Copies bytes skip .. skip + len - 1 of a layout's data between memory (the address of its first byte) and packed data. */
void adi_layout_copy(bool unpack, const struct adi_layout *layout, char *memory, size_t skip, size_t len, char *data);

#endif
