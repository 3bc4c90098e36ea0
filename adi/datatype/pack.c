/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pack and MPI_Unpack: MPI 5.0, section 5.2. Packed data are the bytes of the elements, one behind the other. */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"

/* Checks that a packing buffer of size bytes has room for need bytes at position. */
static int check_room(const void *buf, MPI_Count size, MPI_Count position, size_t need, const char *argument)
{
	if (position < 0 || position > size)
		return adi_error(MPI_ERR_ARG, "position is %lld; valid: 0 to %lld", (long long)position, (long long)size);
	if (need > (size_t)(size - position))
		return adi_error(MPI_ERR_TRUNCATE, "%s has %lld bytes behind position; valid: %zu and above", argument,
				 (long long)(size - position), need);
	return need && !buf ? adi_error(MPI_ERR_BUFFER, "%s is NULL", argument) : MPI_SUCCESS;
}

int mpi_pack(const void *inbuf, MPI_Count incount, struct adi_type *datatype, void *outbuf, MPI_Count outsize,
	     MPI_Count *position, struct adi_comm *comm)
{
	(void)comm;
	struct adi_stream stream;
	if (adi_type_lacks_buffer(inbuf, incount, datatype))
		return adi_error(MPI_ERR_BUFFER, "inbuf is NULL, incount is %lld", (long long)incount);
	int class = adi_stream_start(&stream, inbuf, incount, datatype);
	if (!class)
		class = check_room(outbuf, outsize, *position, stream.bytes, "outbuf");
	if (class)
		return class;
	*position += (MPI_Count)adi_stream_pack(&stream, (char *)outbuf + *position, stream.bytes);
	return MPI_SUCCESS;
}

int mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
	       struct adi_type *datatype, struct adi_comm *comm)
{
	(void)comm;
	struct adi_stream stream;
	if (adi_type_lacks_buffer(outbuf, outcount, datatype))
		return adi_error(MPI_ERR_BUFFER, "outbuf is NULL, outcount is %lld", (long long)outcount);
	int class = adi_stream_start(&stream, outbuf, outcount, datatype);
	if (!class)
		class = check_room(inbuf, insize, *position, stream.bytes, "inbuf");
	if (class)
		return class;
	*position += (MPI_Count)adi_stream_unpack(&stream, (const char *)inbuf + *position, stream.bytes);
	return MPI_SUCCESS;
}

int mpi_pack_size(MPI_Count incount, struct adi_type *datatype, struct adi_comm *comm, MPI_Count *size)
{
	(void)comm;
	if (__builtin_mul_overflow(incount, datatype->size, size))
		return adi_error(MPI_ERR_COUNT, "incount is %lld; the size of the packed data does not fit MPI_Count",
				 (long long)incount);
	return MPI_SUCCESS;
}
