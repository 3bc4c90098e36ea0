/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches and advice, and what a program can ask about both. */
#include "cuda_remote/managed/managed.h"

#include "cuda_remote/graph/driver.h"
#include "cuda_remote/managed/range.h"

static CUresult check_range(CUdeviceptr address, size_t bytes, managed_memory_t *found)
{
	if (!bytes || !managed_driver_find(address, found) || bytes > found->size - (address - found->base))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult check_location(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return managed_driver_device(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The location as queries return it: only devices and NUMA nodes have a number. */
static CUmemLocation plain(const CUmemLocation *location)
{
	bool number = location->type == CU_MEM_LOCATION_TYPE_DEVICE || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
	return (CUmemLocation){ .type = location->type, .id = number ? location->id : 0 };
}

static void set_prefetched(managed_state_t *state, const void *location)
{
	state->prefetched = plain(location);
}

CUresult managed_prefetch(CUdeviceptr address, size_t bytes, const CUmemLocation *location)
{
	managed_memory_t found;
	CUresult result = check_range(address, bytes, &found);
	if (!result)
		result = check_location(location);
	return result ? result : managed_range_change(&found, address, bytes, set_prefetched, location);
}

typedef struct advice {
	CUmem_advise advice;
	CUmemLocation location;
} advice_t;

static void set_accessed(managed_state_t *state, const CUmemLocation *location, bool value)
{
	uint64_t bit = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? (uint64_t)1 << location->id : 0;
	if (!bit)
		state->host_accesses = value;
	else if (value)
		state->device_accesses |= bit;
	else
		state->device_accesses &= ~bit;
}

static void advise(managed_state_t *state, const void *argument)
{
	const advice_t *advice = argument;
	switch (advice->advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		state->read_mostly = advice->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		state->preferred = plain(&advice->location);
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		state->preferred = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_INVALID };
		break;
	default:
		set_accessed(state, &advice->location, advice->advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
	}
}

/* CUDA permits to ignore advice. It has no effect here: there is only one place for the memory. */
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	CUcontext context = NULL;
	managed_memory_t found;
	CUresult result = graph_driver_context(&context);
	if (!result)
		result = check_range(devPtr, count, &found);
	if (result)
		return result;
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		result = check_location(&location);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	advice_t what = { advice, location };
	return result ? result : managed_range_change(&found, devPtr, count, advise, &what);
}

/* CUDA 8's form of the call, with a device number or CU_DEVICE_CPU. */
CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
	if (device == CU_DEVICE_CPU)
		location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };
	return cuMemAdvise_v2(devPtr, count, advice, location);
}

/* What all parts of a range have in common, for queries of the range. */
typedef struct common {
	bool any;
	bool preferred_differs, prefetched_differs;
	managed_state_t state;
} common_t;

static bool same(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

static void add_part(const managed_state_t *state, void *argument)
{
	common_t *common = argument;
	if (!common->any) {
		common->any = true;
		common->state = *state;
		return;
	}
	common->state.read_mostly &= state->read_mostly;
	common->state.host_accesses &= state->host_accesses;
	common->state.device_accesses &= state->device_accesses;
	common->preferred_differs |= !same(&common->state.preferred, &state->preferred);
	common->prefetched_differs |= !same(&common->state.prefetched, &state->prefetched);
}

/* A location in the form of CUDA 8's attributes. */
static int32_t as_device(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_INVALID:
		return CU_DEVICE_INVALID;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return location->id;
	default:
		return CU_DEVICE_CPU;
	}
}

/* Writes the devices that access the whole range, and after them the host, as NVIDIA's driver does. Then fills the program's array
 * with CU_DEVICE_INVALID. */
static void tell_accessors(const managed_state_t *state, int32_t *list, size_t room)
{
	size_t at = 0;
	for (int device = 0; device < MANAGED_DEVICES && at < room; device++)
		if (state->device_accesses >> device & 1)
			list[at++] = device;
	if (state->host_accesses && at < room)
		list[at++] = CU_DEVICE_CPU;
	while (at < room)
		list[at++] = CU_DEVICE_INVALID;
}

static CUresult tell(const common_t *common, CUmem_range_attribute attribute, void *data, size_t bytes)
{
	CUmemLocation preferred = common->state.preferred, prefetched = common->state.prefetched;
	if (common->preferred_differs)
		preferred = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_INVALID };
	if (common->prefetched_differs)
		prefetched = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_INVALID };
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
		if (!bytes || bytes % sizeof(int32_t))
			return CUDA_ERROR_INVALID_VALUE;
		tell_accessors(&common->state, data, bytes / sizeof(int32_t));
		return CUDA_SUCCESS;
	}
	if (bytes != sizeof(int32_t))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*(int32_t *)data = common->state.read_mostly;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*(int32_t *)data = as_device(&preferred);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*(int32_t *)data = as_device(&prefetched);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*(int32_t *)data = (int32_t)preferred.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*(int32_t *)data = preferred.id;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*(int32_t *)data = (int32_t)prefetched.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*(int32_t *)data = prefetched.id;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
				 size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	CUcontext context = NULL;
	managed_memory_t found;
	CUresult result = graph_driver_context(&context);
	if (result)
		return result;
	if (!data || !dataSizes || !attributes || !numAttributes)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_range(devPtr, count, &found);
	if (result)
		return result;
	common_t common = { false };
	managed_range_each(&found, devPtr, count, add_part, &common);
	for (size_t i = 0; i < numAttributes && !result; i++)
		result = data[i] ? tell(&common, attributes[i], data[i], dataSizes[i]) : CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
				size_t count)
{
	return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

static CUresult check_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags)
{
	CUstream stream;
	managed_memory_t found;
	CUresult result = graph_driver_stream(handle, &stream);
	if (result)
		return result;
	if (!batch->addresses || !batch->sizes || !batch->count || flags || graph_driver_stream_legacy(stream))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->count && !result; i++)
		result = check_range(batch->addresses[i], batch->sizes[i], &found);
	return result;
}

CUresult managed_discard_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags)
{
	return check_batch(handle, batch, flags);
}

static CUresult check_locations(const managed_batch_t *batch)
{
	const size_t *starts = batch->location_starts;
	if (!batch->locations || !starts || !batch->location_count || batch->location_count > batch->count || starts[0])
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < batch->location_count && !result; i++) {
		if (starts[i] >= batch->count || (i && starts[i] <= starts[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		result = check_location(&batch->locations[i]);
	}
	return result;
}

CUresult managed_prefetch_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags, bool discard)
{
	(void)discard; /* the contents may be lost, but need not be */
	CUresult result = check_batch(handle, batch, flags);
	if (!result)
		result = check_locations(batch);
	for (size_t i = 0, at = 0; i < batch->count && !result; i++) {
		if (at + 1 < batch->location_count && batch->location_starts[at + 1] == i)
			at++;
		result = managed_prefetch(batch->addresses[i], batch->sizes[i], &batch->locations[at]);
	}
	return result;
}
