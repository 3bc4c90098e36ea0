/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: MPI 5.0, chapter 10. Any function here may be called before MPI_Init and after MPI_Finalize. */
#include "adi/bindings/functions.h"
#include "adi/core/info.h"
#include "adi/core/info_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int adi_info_take(MPI_Info handle, const char *argument, bool allow_null, struct adi_info **found)
{
	struct adi_info *info = NULL;
	if (handle == MPI_INFO_NULL && allow_null) {
		*found = NULL;
		return MPI_SUCCESS;
	}
	if (handle == MPI_INFO_ENV)
		info = adi_info_env();
	else
		info = adi_object_at(handle, ADI_INFO);
	if (!info)
		return adi_error(MPI_ERR_INFO, "%s is %s, no info object", argument, adi_handle_text(handle));
	*found = info;
	return MPI_SUCCESS;
}

struct adi_info *adi_info_new(void)
{
	struct adi_info *info = calloc(1, sizeof *info);
	if (info)
		adi_object_init(&info->object, ADI_INFO);
	return info;
}

static void clear(struct adi_info *info)
{
	for (int i = 0; i < info->n; i++) {
		free(info->entry[i].key);
		free(info->entry[i].value);
	}
	free(info->entry);
	info->entry = NULL;
	info->n = 0;
}

void adi_info_release(struct adi_info *info)
{
	if (!info || !adi_object_release(&info->object))
		return;
	clear(info);
	free(info);
}

static struct adi_info_entry *entry_find(const struct adi_info *info, const char *key)
{
	for (int i = 0; i < info->n; i++)
		if (!strcmp(info->entry[i].key, key))
			return &info->entry[i];
	return NULL;
}

const char *adi_info_get(const struct adi_info *info, const char *key)
{
	const struct adi_info_entry *entry = info ? entry_find(info, key) : NULL;
	return entry ? entry->value : NULL;
}

static int append(struct adi_info *info, const char *key, char *value)
{
	struct adi_info_entry *grown = realloc(info->entry, (size_t)(info->n + 1) * sizeof *grown);
	if (grown)
		info->entry = grown;
	char *copy = strdup(key);
	if (!grown || !copy) {
		free(copy);
		free(value);
		return adi_error(MPI_ERR_NO_MEM, "no memory for info key \"%s\"", key);
	}
	info->entry[info->n++] = (struct adi_info_entry){ copy, value };
	return MPI_SUCCESS;
}

int adi_info_put(struct adi_info *info, const char *key, const char *value)
{
	char *copy = strdup(value);
	if (!copy)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the value of info key \"%s\"", key);
	struct adi_info_entry *entry = entry_find(info, key);
	if (!entry)
		return append(info, key, copy);
	free(entry->value);
	entry->value = copy;
	return MPI_SUCCESS;
}

struct adi_info *adi_info_copy(const struct adi_info *info)
{
	struct adi_info *copy = adi_info_new();
	int class = MPI_SUCCESS;
	for (int i = 0; copy && info && !class && i < info->n; i++)
		class = adi_info_put(copy, info->entry[i].key, info->entry[i].value);
	if (!class)
		return copy;
	adi_info_release(copy);
	return NULL;
}

static int check_key(const char *key)
{
	size_t length = strlen(key);
	if (length > 0 && length < MPI_MAX_INFO_KEY)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_INFO_KEY, "key has %zu characters; valid keys have 1 to %d", length, MPI_MAX_INFO_KEY - 1);
}

static int check_value(const char *value)
{
	size_t length = strlen(value);
	if (length < MPI_MAX_INFO_VAL)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_INFO_VALUE, "value has %zu characters; valid values have at most %d", length,
			 MPI_MAX_INFO_VAL - 1);
}

static int check_writable(const struct adi_info *info)
{
	return info->object.constant ? adi_error(MPI_ERR_INFO, "info is MPI_INFO_ENV, which cannot be changed") : MPI_SUCCESS;
}

static int give(struct adi_info *info, MPI_Info *handle)
{
	if (!info)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	*handle = (MPI_Info)info;
	return MPI_SUCCESS;
}

int mpi_info_create(MPI_Info *info)
{
	return give(adi_info_new(), info);
}

int mpi_info_create_env(int argc, char *argv[], MPI_Info *info)
{
	if (argc < 0)
		return adi_error(MPI_ERR_ARG, "argc is %d; valid: 0 and above", argc);
	return give(adi_info_describe(argc, argv), info);
}

int mpi_info_dup(struct adi_info *info, MPI_Info *newinfo)
{
	return give(adi_info_copy(info), newinfo);
}

int mpi_info_free(MPI_Info *info)
{
	struct adi_info *found = NULL;
	int class = adi_info_take(*info, "info", false, &found);
	if (!class)
		class = check_writable(found);
	if (class)
		return class;
	adi_info_release(found);
	*info = MPI_INFO_NULL;
	return MPI_SUCCESS;
}

int mpi_info_set(struct adi_info *info, const char *key, const char *value)
{
	int class = check_writable(info);
	if (!class)
		class = check_key(key);
	if (!class)
		class = check_value(value);
	return class ? class : adi_info_put(info, key, value);
}

int mpi_info_delete(struct adi_info *info, const char *key)
{
	int class = check_writable(info);
	if (!class)
		class = check_key(key);
	if (class)
		return class;
	struct adi_info_entry *entry = entry_find(info, key);
	if (!entry)
		return adi_error(MPI_ERR_INFO_NOKEY, "key is \"%s\", which info does not have", key);
	free(entry->key);
	free(entry->value);
	memmove(entry, entry + 1, (size_t)(info->entry + info->n - entry - 1) * sizeof *entry);
	info->n--;
	return MPI_SUCCESS;
}

/* valuelen: characters of the value that fit; the buffer has room for one more. */
int mpi_info_get(struct adi_info *info, const char *key, int valuelen, char *value, int *flag)
{
	int class = check_key(key);
	if (class)
		return class;
	if (valuelen < 0)
		return adi_error(MPI_ERR_ARG, "valuelen is %d; valid lengths: 0 and above", valuelen);
	const char *found = adi_info_get(info, key);
	if (found)
		snprintf(value, (size_t)valuelen + 1, "%s", found);
	*flag = found != NULL;
	return MPI_SUCCESS;
}

int mpi_info_get_valuelen(struct adi_info *info, const char *key, int *valuelen, int *flag)
{
	int class = check_key(key);
	if (class)
		return class;
	const char *found = adi_info_get(info, key);
	if (found)
		*valuelen = (int)strlen(found);
	*flag = found != NULL;
	return MPI_SUCCESS;
}

/* *buflen: size of the buffer, its NUL included; afterwards the size that the value needs. */
int mpi_info_get_string(struct adi_info *info, const char *key, int *buflen, char *value, int *flag)
{
	int class = check_key(key);
	if (class)
		return class;
	if (*buflen < 0)
		return adi_error(MPI_ERR_ARG, "buflen is %d; valid lengths: 0 and above", *buflen);
	if (*buflen > 0 && !value)
		return adi_error(MPI_ERR_ARG, "value is a null pointer");
	const char *found = adi_info_get(info, key);
	*flag = found != NULL;
	if (!found)
		return MPI_SUCCESS;
	if (*buflen > 0)
		snprintf(value, (size_t)*buflen, "%s", found);
	*buflen = (int)strlen(found) + 1;
	return MPI_SUCCESS;
}

int mpi_info_get_nkeys(struct adi_info *info, int *nkeys)
{
	*nkeys = info->n;
	return MPI_SUCCESS;
}

int mpi_info_get_nthkey(struct adi_info *info, int n, char *key)
{
	if (n < 0 || n >= info->n)
		return adi_error(MPI_ERR_ARG, "n is %d; info has %d keys", n, info->n);
	strcpy(key, info->entry[n].key);
	return MPI_SUCCESS;
}
