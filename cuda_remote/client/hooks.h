/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the table of calls (api/calls) names: the generated code calls peer_* before all else, check_* before a call goes out,
 * and done_* after it. RC_ANSWERED: the call is answered with success, and nothing is sent.
 */
#ifndef RC_CLIENT_HOOKS_H
#define RC_CLIENT_HOOKS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- peer_* ---- */

bool peer_dtod(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUresult *result);
bool peer_dtod_async(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, CUresult *result);
bool peer_copy(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
	       CUresult *result);
CUresult peer_done_copy(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size);
bool peer_copy_async(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		     size_t size, CUstream stream, CUresult *result);
bool peer_wait_event(uint16_t flags, CUstream stream, CUevent event, unsigned event_flags, CUresult *result);
bool peer_occupancy(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, CUresult *result);
bool peer_occupancy_flags(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, unsigned how,
			  CUresult *result);
bool peer_occupancy_shared(uint16_t flags, size_t *shared, CUfunction function, int blocks, int threads, CUresult *result);

/* ---- graph/capture_calls.c; RC_ANSWERED: the call has become part of a graph ---- */

CUresult capture_check_stream(CUstream stream);
CUresult capture_check_event(CUevent event);
CUresult capture_check_record(CUevent event, CUstream stream);
CUresult capture_check_record_flags(CUevent event, CUstream stream, unsigned flags);
CUresult capture_done_event(CUevent event);
CUresult capture_check_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size);

/* ---- check_* and done_* ---- */

CUresult memory_done_info(size_t *available, size_t *total);
CUresult pointer_check_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult pointer_done_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult device_check_atomics(unsigned *capabilities, const CUatomicOperation *operations, unsigned count, CUdevice from,
			      CUdevice to);
CUresult memset_check_d8(CUdeviceptr to, unsigned char value, size_t n);
CUresult memset_check_d16(CUdeviceptr to, unsigned short value, size_t n);
CUresult memset_check_d32(CUdeviceptr to, unsigned value, size_t n);
CUresult memset_check_d2d8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUresult memset_check_d2d16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height);
CUresult memset_check_d2d32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height);
CUresult memset_check_d8_async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream);
CUresult memset_check_d16_async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream);
CUresult memset_check_d32_async(CUdeviceptr to, unsigned value, size_t n, CUstream stream);
CUresult memset_check_d2d8_async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
				 CUstream stream);
CUresult memset_check_d2d16_async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
				  CUstream stream);
CUresult memset_check_d2d32_async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
				  CUstream stream);
CUresult copy_check_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
			       CUstream stream);
CUresult copy_check_dtod(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult copy_check_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
CUresult array_check_create(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *like);
CUresult array_check_create_3d(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like);
CUresult array_check_create_mipmapped(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels);
CUresult array_check_destroy(CUarray array);
CUresult array_check_destroy_mipmapped(CUmipmappedArray array);
CUresult stream_check_create(CUstream *stream, unsigned flags);
CUresult stream_done_create(CUstream *stream, unsigned flags);
CUresult stream_check_create_priority(CUstream *stream, unsigned flags, int priority);
CUresult stream_done_create_priority(CUstream *stream, unsigned flags, int priority);
CUresult stream_check_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value);
CUresult stream_check_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value);
CUresult stream_check_destroy(CUstream stream);
CUresult stream_done_destroy(CUstream stream);
CUresult context_check_peer(CUcontext peer, unsigned flags);
CUresult context_check_cache(CUfunc_cache config);
CUresult stream_check_wait_event(CUstream stream, CUevent event, unsigned flags);
CUresult pool_check_destroy(CUmemoryPool pool);
CUresult pool_check_trim(CUmemoryPool pool, size_t bytes);
CUresult pool_check_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult pool_check_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult pool_check_set_access(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count);
CUresult pool_check_get_access(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
CUresult pool_check_set(CUdevice device, CUmemoryPool pool);
CUresult pool_done_set(CUdevice device, CUmemoryPool pool);
CUresult virtual_done_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
			     unsigned long long flags);
CUresult virtual_check_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count);
CUresult virtual_done_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count);
CUresult texture_done_create(CUtexObject *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
			     const CUDA_RESOURCE_VIEW_DESC *view);
CUresult texture_done_destroy(CUtexObject object);
CUresult surface_done_create(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource);
CUresult surface_done_destroy(CUsurfObject object);
CUresult reference_done_array(CUtexref reference, CUarray array, unsigned flags);
CUresult reference_done_mipmap(CUtexref reference, CUmipmappedArray array, unsigned flags);
CUresult reference_done_surface(CUsurfref reference, CUarray array, unsigned flags);
CUresult reference_check_destroy(CUtexref reference);
CUresult reference_done_address(size_t *offset, CUtexref reference, CUdeviceptr address, size_t bytes);
CUresult reference_done_address_2d(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr address, size_t pitch);
CUresult event_check_create(CUevent *event, unsigned flags);
CUresult event_check_synchronize(CUevent event);
CUresult stream_check_synchronize(CUstream stream);
CUresult event_check_elapsed(float *milliseconds, CUevent start, CUevent end);
CUresult event_done_create(CUevent *event, unsigned flags);
CUresult event_done_destroy(CUevent event);
CUresult event_done_record(CUevent event, CUstream stream);
CUresult event_done_record_flags(CUevent event, CUstream stream, unsigned flags);
CUresult stream_done_wait_event(CUstream stream, CUevent event, unsigned flags);

#endif
