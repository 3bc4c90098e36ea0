/* SPDX-License-Identifier: BSD-3-Clause */
/* Shareable handles of memory of cuMemCreate. */
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/ipc/handle_file.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <string.h>

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle memory, CUmemAllocationHandleType type,
				      unsigned long long flags)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_memory call;
	} message = { .call = { memory } };
	CUmemAllocationProp properties;
	struct rc_wire_shared handle;
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shareable || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = cuMemGetAllocationPropertiesFromHandle(&properties, memory);
	if (result != CUDA_SUCCESS)
		return result;
	if (!(properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_route_handle(&route, RC_KIND_ALLOCATION, memory);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, false, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_virtual_export, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof handle)
		return rc_link_broken(link, RC_CALL_virtual_export);
	memcpy(&handle, link->reply, sizeof handle);
	return rc_handle_file_open(link->session, &handle, shareable);
}

/* The program's number of a server's device. */
static CUresult device_number(const struct rc_session *session, uint32_t ordinal, int *number)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	for (*number = 0; *number < process->devices; ++*number) {
		const struct rc_device *device = &process->device[*number];
		if (device->session == session && (uint32_t)device->ordinal == ordinal)
			return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult import(struct rc_link *link, const struct rc_wire_shared *handle, CUmemGenericAllocationHandle memory)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_import call;
	} message = { .call = { *handle, memory } };
	struct rc_wire_imported answer;
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					   .location.type = CU_MEM_LOCATION_TYPE_DEVICE };
	CUresult result = rc_link_call(link, RC_CALL_virtual_import, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof answer)
		return rc_link_broken(link, RC_CALL_virtual_import);
	memcpy(&answer, link->reply, sizeof answer);
	result = device_number(link->session, answer.device, &properties.location.id);
	return result == CUDA_SUCCESS ? virtual_done_create(&memory, answer.bytes, &properties, 0) : result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *shareable, CUmemAllocationHandleType type)
{
	struct rc_wire_shared handle;
	struct rc_link *link;
	uint64_t made;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, false, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = rc_handle_file_read((int)(intptr_t)shareable, &handle);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_ALLOCATION, link->session, &made);
	if (result != CUDA_SUCCESS)
		return result;
	result = import(link, &handle, made);
	if (result == CUDA_SUCCESS)
		*memory = made;
	else
		rc_handle_delete(made);
	return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}
