/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes: MPI 5.0, chapter 5. A datatype is compiled, when it is first used for communication, into a flat list of runs
 * and strides (struct adi_layout), from which the bytes of a message are packed, unpacked, or described as a vector of
 * buffers.
 */
#ifndef ADI_DATATYPE_TYPE_H
#define ADI_DATATYPE_TYPE_H

#include "adi/core/attribute.h"
#include "adi/core/error.h"

#include <stddef.h>
#include <sys/uio.h>

struct adi_layout;
struct adi_type_contents;

/* What an element of a predefined datatype is, for reductions. Pairs are of MINLOC and MAXLOC. */
enum adi_basic {
	ADI_BASIC_NONE, /* a derived type of different elements */
	ADI_BASIC_INT8, ADI_BASIC_INT16, ADI_BASIC_INT32, ADI_BASIC_INT64,
	ADI_BASIC_UINT8, ADI_BASIC_UINT16, ADI_BASIC_UINT32, ADI_BASIC_UINT64,
	ADI_BASIC_FLOAT16, ADI_BASIC_FLOAT, ADI_BASIC_DOUBLE, ADI_BASIC_LONG_DOUBLE, ADI_BASIC_FLOAT128,
	ADI_BASIC_FLOAT_COMPLEX, ADI_BASIC_DOUBLE_COMPLEX, ADI_BASIC_LONG_DOUBLE_COMPLEX,
	ADI_BASIC_BOOL,                                                   /* C's and C++'s, one byte */
	ADI_BASIC_LOGICAL1, ADI_BASIC_LOGICAL2, ADI_BASIC_LOGICAL4, ADI_BASIC_LOGICAL8, /* Fortran's */
	ADI_BASIC_BYTE, ADI_BASIC_CHAR, /* no arithmetic; MPI_BYTE has bitwise operations */
	ADI_BASIC_FLOAT_INT, ADI_BASIC_DOUBLE_INT, ADI_BASIC_LONG_INT, ADI_BASIC_2INT, ADI_BASIC_SHORT_INT,
	ADI_BASIC_LONG_DOUBLE_INT, ADI_BASIC_2FLOAT, ADI_BASIC_2DOUBLE,
	ADI_BASIC_WCHAR, /* no arithmetic */
	ADI_BASIC_INT128, ADI_BASIC_FLOAT16_COMPLEX, ADI_BASIC_FLOAT128_COMPLEX, ADI_BASIC_LOGICAL16, /* of Fortran */
	ADI_BASICS
};

struct adi_type {
	struct adi_object object;
	char name[MPI_MAX_OBJECT_NAME];
	bool committed;
	bool contiguous;  /* count elements are one run of count * size bytes that starts at offset true_lb */
	enum adi_basic basic; /* of all elements, if they are the same; ADI_BASIC_NONE otherwise */
	MPI_Count size;       /* bytes of data of one element */
	MPI_Count lb, extent; /* bytes */
	MPI_Count true_lb, true_extent;
	struct adi_layout *layout;          /* NULL: not compiled yet */
	struct adi_type_contents *contents; /* how it was constructed; NULL: predefined */
	struct adi_attributes attributes;

	/* For adi/datatype alone. */
	MPI_Count elements; /* basic elements; a pair has two */
	MPI_Count external; /* bytes in external32 */
	const struct adi_type *leaf; /* the predefined datatype of all elements, if it is the same; else NULL */
	int align;    /* bytes: the strictest alignment of its elements */
	int depth;    /* levels of derivation; predefined: 0 */
	bool bounded; /* has explicit bounds: it, or a part of it, was resized (MPI 5.0, section 5.1.6) */
	bool run;     /* one element is one run of size bytes that starts at offset true_lb */
	bool narrow;  /* predefined: C's long, which external32 shortens to 4 bytes */
};

/* take: of any valid datatype. take_committed: error if the datatype is not committed, which communication needs. */
extern struct adi_type *const adi_type_constants[256]; /* the predefined types, by the low byte of the handle */
int adi_type_error(MPI_Datatype handle, const char *argument) __attribute__((cold));
static inline int adi_type_take(MPI_Datatype handle, const char *argument, struct adi_type **found)
{
	uintptr_t constant = (uintptr_t)handle - (uintptr_t)MPI_DATATYPE_NULL;
	struct adi_type *type = constant < 256 ? adi_type_constants[constant] : adi_object_at(handle, ADI_TYPE);
	*found = type;
	return __builtin_expect(!type, 0) ? adi_type_error(handle, argument) : MPI_SUCCESS;
}
static inline int adi_type_take_committed(MPI_Datatype handle, const char *argument, struct adi_type **found)
{
	int class = adi_type_take(handle, argument, found);
	if (__builtin_expect(!class && !(*found)->committed, 0))
		return adi_type_error(handle, argument);
	return class;
}
/* Whether elements have no buffer. The buffer of a derived datatype may be NULL (MPI_BOTTOM): its displacements may be
 * addresses. */
static inline bool adi_type_lacks_buffer(const void *buf, MPI_Count count, const struct adi_type *type)
{
	return __builtin_expect(!buf, 0) && count > 0 && type->object.constant && type->size > 0;
}
static inline MPI_Datatype adi_type_handle(struct adi_type *type)
{
	return (MPI_Datatype)adi_object_handle(&type->object);
}
void adi_type_release(struct adi_type *type);
/* The predefined type of MPI_BYTE. */
extern struct adi_type *const adi_type_byte;
/* Size of an element of a basic kind in memory, in bytes (pairs: the C struct, with padding). */
size_t adi_basic_size(enum adi_basic basic);
/* Bytes of memory that count > 0 elements span: from the lowest byte of their data to the highest. *first: offset of the
 * lowest byte from the buffer's address. If they do not fit MPI_Count: 0 and INT64_MAX. */
MPI_Count adi_type_span(const struct adi_type *type, MPI_Count count, MPI_Count *first);

/* The data of count elements at buf, as a stream of count * size bytes. */
struct adi_stream {
	char *buf;
	MPI_Count count;
	struct adi_type *type;
	size_t bytes; /* of the whole stream */
	size_t at;    /* bytes done */
};
/* Starts at the first byte. The caller holds a reference to the type as long as it uses the stream. buf may be MPI_BOTTOM.
 * Returns an error class: MPI_ERR_NO_MEM if the layout cannot be compiled, MPI_ERR_COUNT if count * size is too large. */
int adi_stream_start(struct adi_stream *stream, const void *buf, MPI_Count count, struct adi_type *type);
/* Copies the next bytes of the stream, at most max, out of the buffer (pack) or into it (unpack). Return the bytes copied,
 * which are fewer than max only at the end. */
size_t adi_stream_pack(struct adi_stream *stream, void *to, size_t max);
size_t adi_stream_unpack(struct adi_stream *stream, const void *from, size_t max);
/* Describes the next bytes as at most n pieces of memory and at most max bytes; stores the bytes described in *bytes and
 * advances. Returns the number of pieces. */
int adi_stream_pieces(struct adi_stream *stream, struct iovec *piece, int n, size_t max, size_t *bytes);
/* Moves to a byte of the stream. */
void adi_stream_seek(struct adi_stream *stream, size_t at);

/* Copies data between two buffers of any types, as a message to oneself would. Returns MPI_ERR_TRUNCATE if from is longer than
 * to. The memory may not overlap. */
int adi_type_copy(const void *from, MPI_Count from_count, struct adi_type *from_type, void *to, MPI_Count to_count,
		  struct adi_type *to_type);

/* A datatype as bytes that another process can turn into a datatype with the same type map (for windows): wire returns the
 * number of bytes (0: no memory), and writes them to to if they are not more than max. From the wire every field is checked;
 * the new type is committed, and the caller owns a reference to it. Its data may lie anywhere and its size may be anything: the
 * caller compares adi_type_span and size with what it allows. */
size_t adi_type_wire(const struct adi_type *type, void *to, size_t max);
int adi_type_from_wire(const void *bytes, size_t len, struct adi_type **type);

#endif
