/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control variables. Each setting of the library (rdma_channel/base/setting.h) is one; its name is that of the setting's variable
 * in the environment. The library reads its settings when it starts, so a variable can be written until MPI is initialised.
 */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/core/job.h"
#include "adi/tool/tool.h"

#include "rdma_channel/base/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 256 /* characters of a setting that is not a number, with the final zero */
#define MAGIC 0x63766172u

struct handle {
	uint32_t magic;
	const struct hr_setting *setting;
};

static const struct hr_setting *control(int index)
{
	const struct hr_setting *const *first;
	size_t n = hr_setting_list(&first);
	return index >= 0 && (size_t)index < n ? first[index] : NULL;
}

/* A setting with a range may have a word as its default. */
static bool is_number(const struct hr_setting *setting)
{
	return (setting->min || setting->max) && setting->default_value[0] >= '0' && setting->default_value[0] <= '9';
}

int tool_controls(void)
{
	const struct hr_setting *const *first;
	return (int)hr_setting_list(&first);
}

int mpi_t_cvar_get_num(int *num_cvar)
{
	TOOL_CHECK_RUNNING();
	if (!num_cvar)
		return MPI_T_ERR_INVALID;
	*num_cvar = tool_controls();
	return MPI_SUCCESS;
}

int mpi_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype, MPI_T_enum *enumtype,
			char *desc, int *desc_len, int *bind, int *scope)
{
	TOOL_CHECK_RUNNING();
	const struct hr_setting *setting = control(cvar_index);
	if (!setting)
		return MPI_T_ERR_INVALID_INDEX;
	tool_text(setting->variable, name, name_len);
	tool_text(setting->help, desc, desc_len);
	tool_put(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
	if (datatype)
		*datatype = is_number(setting) ? MPI_UNSIGNED_LONG_LONG : MPI_CHAR;
	if (enumtype)
		*enumtype = MPI_T_ENUM_NULL;
	tool_put(bind, MPI_T_BIND_NO_OBJECT);
	/* Some settings must be the same in all processes. */
	tool_put(scope, MPI_T_SCOPE_ALL_EQ);
	return MPI_SUCCESS;
}

int mpi_t_cvar_get_index(const char *name, int *cvar_index)
{
	TOOL_CHECK_RUNNING();
	if (!name || !cvar_index)
		return MPI_T_ERR_INVALID;
	for (int i = 0; control(i); i++)
		if (strcmp(control(i)->variable, name) == 0) {
			*cvar_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
	(void)obj_handle;
	TOOL_CHECK_RUNNING();
	const struct hr_setting *setting = control(cvar_index);
	if (!setting)
		return MPI_T_ERR_INVALID_INDEX;
	if (!handle || !count)
		return MPI_T_ERR_INVALID;
	struct handle *made = malloc(sizeof *made);
	if (!made)
		return MPI_T_ERR_MEMORY;
	*made = (struct handle){ MAGIC, setting };
	*handle = (MPI_T_cvar_handle)made;
	*count = is_number(setting) ? 1 : TEXT_MAX;
	return MPI_SUCCESS;
}

static struct handle *handle_of(MPI_T_cvar_handle handle)
{
	struct handle *found = (struct handle *)handle;
	return found && found->magic == MAGIC ? found : NULL;
}

int mpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
	TOOL_CHECK_RUNNING();
	struct handle *found = handle ? handle_of(*handle) : NULL;
	if (!found)
		return MPI_T_ERR_INVALID_HANDLE;
	found->magic = 0;
	free(found);
	*handle = MPI_T_CVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

int mpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
	TOOL_CHECK_RUNNING();
	struct handle *found = handle_of(handle);
	if (!found)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buf)
		return MPI_T_ERR_INVALID;
	uint64_t number;
	if (!is_number(found->setting)) {
		snprintf(buf, TEXT_MAX, "%s", hr_setting_text(found->setting));
		return MPI_SUCCESS;
	}
	if (hr_setting_u64(found->setting, &number))
		return MPI_T_ERR_INVALID;
	memcpy(buf, &number, sizeof number);
	return MPI_SUCCESS;
}

static int control_set(const struct hr_setting *setting, const void *buf)
{
	char text[TEXT_MAX];
	if (is_number(setting)) {
		uint64_t number;
		memcpy(&number, buf, sizeof number);
		if (number < setting->min || number > setting->max)
			return MPI_T_ERR_INVALID;
		snprintf(text, sizeof text, "%" PRIu64, number);
	} else {
		if (!memchr(buf, '\0', TEXT_MAX))
			return MPI_T_ERR_INVALID;
		snprintf(text, sizeof text, "%s", (const char *)buf);
	}
	return setenv(setting->variable, text, 1) ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
}

int mpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
	TOOL_CHECK_RUNNING();
	struct handle *found = handle_of(handle);
	if (!found)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buf)
		return MPI_T_ERR_INVALID;
	if (adi_running || adi_job.engine)
		return MPI_T_ERR_CVAR_SET_NOT_NOW;
	return control_set(found->setting, buf);
}
