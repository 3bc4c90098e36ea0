/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: MPI 5.0, section 15.3.8. There are no event types and no sources, so every index, name and handle is invalid. */
#include "adi/bindings/functions.h"
#include "adi/tool/tool.h"

int mpi_t_event_get_num(int *num_events)
{
	TOOL_CHECK_RUNNING();
	if (!num_events)
		return MPI_T_ERR_INVALID;
	*num_events = 0;
	return MPI_SUCCESS;
}

int mpi_t_source_get_num(int *num_sources)
{
	TOOL_CHECK_RUNNING();
	if (!num_sources)
		return MPI_T_ERR_INVALID;
	*num_sources = 0;
	return MPI_SUCCESS;
}

int mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity, MPI_Datatype array_of_datatypes[],
			 MPI_Aint array_of_displacements[], int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char
			 *desc, int *desc_len, int *bind)
{
	(void)event_index;
	(void)name;
	(void)name_len;
	(void)verbosity;
	(void)array_of_datatypes;
	(void)array_of_displacements;
	(void)num_elements;
	(void)enumtype;
	(void)info;
	(void)desc;
	(void)desc_len;
	(void)bind;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_INDEX;
}

int mpi_t_event_get_index(const char *name, int *event_index)
{
	(void)name;
	(void)event_index;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_event_handle_alloc(int event_index, void *obj_handle, struct adi_info *info, MPI_T_event_registration
			     *event_registration)
{
	(void)event_index;
	(void)obj_handle;
	(void)info;
	(void)event_registration;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_INDEX;
}

int mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, struct adi_info *info)
{
	(void)event_registration;
	(void)info;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
	(void)event_registration;
	(void)info_used;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, struct
				  adi_info *info, void *user_data, MPI_T_event_cb_function event_cb_function)
{
	(void)event_registration;
	(void)cb_safety;
	(void)info;
	(void)user_data;
	(void)event_cb_function;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, struct
				  adi_info *info)
{
	(void)event_registration;
	(void)cb_safety;
	(void)info;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info
				  *info_used)
{
	(void)event_registration;
	(void)cb_safety;
	(void)info_used;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data, MPI_T_event_free_cb_function
			    free_cb_function)
{
	(void)event_registration;
	(void)user_data;
	(void)free_cb_function;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration, MPI_T_event_dropped_cb_function
				    dropped_cb_function)
{
	(void)event_registration;
	(void)dropped_cb_function;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
	(void)event_instance;
	(void)element_index;
	(void)buffer;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	(void)event_instance;
	(void)buffer;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
	(void)event_instance;
	(void)event_timestamp;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
	(void)event_instance;
	(void)source_index;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len, MPI_T_source_order
			  *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
	(void)source_index;
	(void)name;
	(void)name_len;
	(void)desc;
	(void)desc_len;
	(void)ordering;
	(void)ticks_per_second;
	(void)max_ticks;
	(void)info;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_INDEX;
}

int mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	(void)source_index;
	(void)timestamp;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_INDEX;
}
