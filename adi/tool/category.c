/* SPDX-License-Identifier: BSD-3-Clause */
/* Categories: one for all control variables, one for all performance variables. They do not change. */
#include "adi/bindings/functions.h"
#include "adi/tool/tool.h"

#include <string.h>

enum { SETTINGS, STATISTICS, CATEGORIES };

static const char *const texts[CATEGORIES][2] = {
	[SETTINGS] = { "settings", "settings of the library, from the environment" },
	[STATISTICS] = { "statistics", "what the library has done so far" },
};

int mpi_t_category_get_num(int *num_cat)
{
	TOOL_CHECK_RUNNING();
	if (!num_cat)
		return MPI_T_ERR_INVALID;
	*num_cat = CATEGORIES;
	return MPI_SUCCESS;
}

int mpi_t_category_changed(int *update_number)
{
	TOOL_CHECK_RUNNING();
	if (!update_number)
		return MPI_T_ERR_INVALID;
	*update_number = 0;
	return MPI_SUCCESS;
}

int mpi_t_category_get_index(const char *name, int *cat_index)
{
	TOOL_CHECK_RUNNING();
	if (!name || !cat_index)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < CATEGORIES; i++)
		if (strcmp(texts[i][0], name) == 0) {
			*cat_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars, int *num_pvars,
			    int *num_categories)
{
	TOOL_CHECK_RUNNING();
	if (cat_index < 0 || cat_index >= CATEGORIES)
		return MPI_T_ERR_INVALID_INDEX;
	tool_text(texts[cat_index][0], name, name_len);
	tool_text(texts[cat_index][1], desc, desc_len);
	tool_put(num_cvars, cat_index == SETTINGS ? tool_controls() : 0);
	tool_put(num_pvars, cat_index == STATISTICS ? tool_measures() : 0);
	tool_put(num_categories, 0);
	return MPI_SUCCESS;
}

/* Stores the first numbers of n members 0, 1, ... */
static int members(int cat_index, int n, int len, int indices[])
{
	TOOL_CHECK_RUNNING();
	if (cat_index < 0 || cat_index >= CATEGORIES)
		return MPI_T_ERR_INVALID_INDEX;
	if (len < 0 || (len > 0 && !indices))
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < n && i < len; i++)
		indices[i] = i;
	return MPI_SUCCESS;
}

int mpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
	return members(cat_index, cat_index == SETTINGS ? tool_controls() : 0, len, indices);
}

int mpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
	return members(cat_index, cat_index == STATISTICS ? tool_measures() : 0, len, indices);
}

int mpi_t_category_get_categories(int cat_index, int len, int indices[])
{
	return members(cat_index, 0, len, indices);
}

int mpi_t_category_get_events(int cat_index, int len, int indices[])
{
	return members(cat_index, 0, len, indices);
}

int mpi_t_category_get_num_events(int cat_index, int *num_events)
{
	int code = members(cat_index, 0, 0, NULL);
	if (!code)
		tool_put(num_events, 0);
	return code;
}
