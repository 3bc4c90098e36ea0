/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data representation external32: MPI 5.0, sections 5.3 and 14.5.2. All numbers are big-endian; long has 4 bytes, wchar_t 2,
 * and long double is IEEE binary128.
 */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"

#include <float.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers in memory are little-endian");

/* How a number of a predefined datatype is written. */
struct form {
	int parts;              /* 2: complex */
	size_t native, external; /* bytes of a part */
	enum { FORM_BYTES, FORM_SIGNED, FORM_UNSIGNED, FORM_LONG_DOUBLE } how; /* signed, unsigned: when it is extended */
};

static struct form form_of(enum adi_basic basic, bool narrow)
{
	size_t size = adi_basic_size(basic);
	struct form form = { 1, size, size, FORM_BYTES };
	switch (basic) {
	case ADI_BASIC_FLOAT16_COMPLEX:
	case ADI_BASIC_FLOAT_COMPLEX:
	case ADI_BASIC_DOUBLE_COMPLEX:
	case ADI_BASIC_FLOAT128_COMPLEX:
		form = (struct form){ 2, size / 2, size / 2, FORM_BYTES };
		break;
	case ADI_BASIC_LONG_DOUBLE:
		form = (struct form){ 1, size, 16, FORM_LONG_DOUBLE };
		break;
	case ADI_BASIC_LONG_DOUBLE_COMPLEX:
		form = (struct form){ 2, size / 2, 16, FORM_LONG_DOUBLE };
		break;
	case ADI_BASIC_WCHAR:
		form = (struct form){ 1, size, 2, FORM_UNSIGNED };
		break;
	case ADI_BASIC_INT64:
		form = (struct form){ 1, size, narrow ? 4 : size, FORM_SIGNED };
		break;
	case ADI_BASIC_UINT64:
		form = (struct form){ 1, size, narrow ? 4 : size, FORM_UNSIGNED };
		break;
	default:
		break;
	}
	return form;
}

/* Kinds of the value and of the index of a pair. ADI_BASIC_NONE: no pair. */
static enum adi_basic value_of(enum adi_basic pair, enum adi_basic *index)
{
	*index = ADI_BASIC_INT32;
	switch (pair) {
	case ADI_BASIC_FLOAT_INT:
		return ADI_BASIC_FLOAT;
	case ADI_BASIC_DOUBLE_INT:
		return ADI_BASIC_DOUBLE;
	case ADI_BASIC_LONG_INT:
		return ADI_BASIC_INT64;
	case ADI_BASIC_2INT:
		return ADI_BASIC_INT32;
	case ADI_BASIC_SHORT_INT:
		return ADI_BASIC_INT16;
	case ADI_BASIC_LONG_DOUBLE_INT:
		return ADI_BASIC_LONG_DOUBLE;
	case ADI_BASIC_2FLOAT:
		return *index = ADI_BASIC_FLOAT;
	case ADI_BASIC_2DOUBLE:
		return *index = ADI_BASIC_DOUBLE;
	default:
		return ADI_BASIC_NONE;
	}
}

static void reverse(char *to, const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = from[bytes - 1 - i];
}

static void long_double(bool unpack, char *memory, char *data)
{
#if LDBL_MANT_DIG == 113
	reverse(unpack ? memory : data, unpack ? data : memory, 16);
#else
	long double native;
	__float128 quad;
	if (unpack) {
		reverse((char *)&quad, data, sizeof quad);
		native = (long double)quad;
		memset(memory, 0, sizeof native);
		memcpy(memory, &native, LDBL_MANT_DIG == 64 ? 10 : sizeof native); /* the rest is padding */
	} else {
		memcpy(&native, memory, sizeof native);
		quad = (__float128)native;
		reverse(data, (char *)&quad, sizeof quad);
	}
#endif
}

static void convert_part(bool unpack, const struct form *form, char *memory, char *data)
{
	if (form->how == FORM_LONG_DOUBLE) {
		long_double(unpack, memory, data);
	} else if (!unpack) {
		reverse(data, memory, form->external);
	} else {
		reverse(memory, data, form->external);
		bool ones = form->how == FORM_SIGNED && data[0] < 0;
		memset(memory + form->external, ones ? 0xff : 0, form->native - form->external);
	}
}

static char *convert_number(bool unpack, const struct form *form, char *memory, char *data)
{
	for (int i = 0; i < form->parts; i++, memory += form->native, data += form->external)
		convert_part(unpack, form, memory, data);
	return data;
}

/* n elements of a predefined datatype. Returns the end of the data. */
static char *convert_leaf(bool unpack, const struct adi_type *type, MPI_Count n, char *memory, char *data)
{
	enum adi_basic index, value = value_of(type->basic, &index);
	struct form first = form_of(value ? value : type->basic, type->narrow), second = form_of(index, false);
	for (MPI_Count i = 0; i < n; i++, memory += type->extent) {
		data = convert_number(unpack, &first, memory, data);
		if (value)
			data = convert_number(unpack, &second, memory + type->true_extent - second.native, data);
	}
	return data;
}

/* count elements of any datatype. Returns the end of the data. */
static char *convert(bool unpack, const struct adi_type *type, MPI_Count count, char *memory, char *data)
{
	if (!type->size)
		return data;
	if (!type->contents)
		return convert_leaf(unpack, type, count, memory, data);
	if (type->leaf && type->leaf->contiguous && type->contiguous)
		return convert_leaf(unpack, type->leaf, count * (type->size / type->leaf->size), memory + type->true_lb, data);
	for (MPI_Count k = 0; k < count; k++, memory += type->extent)
		for (MPI_Count i = 0; i < type->contents->n; i++) {
			struct adi_block block = adi_contents_block(type->contents, i);
			data = convert(unpack, block.type, block.length, memory + block.at, data);
		}
	return data;
}

static int check_datarep(const char *datarep)
{
	return !strcmp(datarep, "external32") ? MPI_SUCCESS :
						adi_error(MPI_ERR_UNSUPPORTED_DATAREP, "datarep is \"%s\"; valid: \"external32\"",
							  datarep);
}

int mpi_pack_external_size(const char *datarep, MPI_Count incount, struct adi_type *datatype, MPI_Count *size)
{
	int class = check_datarep(datarep);
	if (!class && __builtin_mul_overflow(incount, datatype->external, size))
		class = adi_error(MPI_ERR_COUNT, "incount is %lld; the size of the packed data does not fit MPI_Count",
				  (long long)incount);
	return class;
}

/* Checks that a packing buffer of size bytes has room for the data at position. */
static int check_room(const char *datarep, MPI_Count count, struct adi_type *type, const void *buf, MPI_Count size,
		      MPI_Count position, const char *argument)
{
	MPI_Count need;
	int class = mpi_pack_external_size(datarep, count, type, &need);
	if (class)
		return class;
	if (position < 0 || position > size)
		return adi_error(MPI_ERR_ARG, "position is %lld; valid: 0 to %lld", (long long)position, (long long)size);
	if (need > size - position)
		return adi_error(MPI_ERR_TRUNCATE, "%s has %lld bytes behind position; valid: %lld and above", argument,
				 (long long)(size - position), (long long)need);
	return need && !buf ? adi_error(MPI_ERR_BUFFER, "%s is NULL", argument) : MPI_SUCCESS;
}

int mpi_pack_external(const char *datarep, const void *inbuf, MPI_Count incount, struct adi_type *datatype, void *outbuf,
		      MPI_Count outsize, MPI_Count *position)
{
	if (adi_type_lacks_buffer(inbuf, incount, datatype))
		return adi_error(MPI_ERR_BUFFER, "inbuf is NULL, incount is %lld", (long long)incount);
	int class = check_room(datarep, incount, datatype, outbuf, outsize, *position, "outbuf");
	if (class)
		return class;
	char *data = (char *)outbuf + *position;
	*position += convert(false, datatype, incount, (char *)(uintptr_t)inbuf, data) - data;
	return MPI_SUCCESS;
}

int mpi_unpack_external(const char *datarep, const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
			MPI_Count outcount, struct adi_type *datatype)
{
	if (adi_type_lacks_buffer(outbuf, outcount, datatype))
		return adi_error(MPI_ERR_BUFFER, "outbuf is NULL, outcount is %lld", (long long)outcount);
	int class = check_room(datarep, outcount, datatype, inbuf, insize, *position, "inbuf");
	if (class)
		return class;
	char *data = (char *)(uintptr_t)inbuf + *position;
	*position += convert(true, datatype, outcount, outbuf, data) - data;
	return MPI_SUCCESS;
}
