/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texture and surface objects. The program's handle is the engine's number; the descriptions are stored here for
 * queries.
 */
#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/softgpu/driver/texture/texture_resource.h"

struct texture_object {
	handle_t handle;
	owned_t owned;
	uint64_t number; /* the engine's */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};
_Static_assert(sizeof(struct texture_object) <= HANDLE_SLOT_BYTES, "fits in a slot");

static void destroy_object(owned_t *owned)
{
	struct texture_object *object = OWNER_OF(owned, struct texture_object);
	softgpu_texture_destroy(object->number);
	handle_retire(object);
	handle_release(object);
}

static CUresult make_object(CUcontext context, enum softgpu_texture_kind kind, struct texture_object **output)
{
	struct texture_object *object = handle_new(HANDLE_TEXTURE, sizeof *object);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->number = softgpu_texture_create(kind, object);
	if (!object->number) {
		handle_retire(object);
		handle_release(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	owned_add(&context->owned, &object->owned, OWNED_TEXTURE, destroy_object);
	*output = object;
	return CUDA_SUCCESS;
}

/* Finds the object of this kind behind a handle. Every call on an object begins with this. */
static CUresult find_object(uint64_t number, enum softgpu_texture_kind kind, struct texture_object **object)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (softgpu_texture_kind(number) != kind)
		return CUDA_ERROR_INVALID_VALUE;
	*object = softgpu_texture_user(number);
	return CUDA_SUCCESS;
}

/* find_object for a call with an output: CUDA_ERROR_INVALID_VALUE if place is NULL. */
static CUresult find_to_tell(uint64_t number, enum softgpu_texture_kind kind, const void *place,
			     struct texture_object **object)
{
	CUresult result = find_object(number, kind, object);
	return result || place ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
			   const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	CUcontext context;
	softgpu_image_t image;
	softgpu_sampler_t sampler;
	struct texture_object *object;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	result = texture_resource_image(pResDesc, pResViewDesc, &image);
	if (!result)
		result = texture_resource_sampler(pTexDesc, &image, &sampler);
	if (!result)
		result = make_object(context, SOFTGPU_TEXTURE_OBJECT, &object);
	if (result)
		return result;
	object->resource = *pResDesc;
	object->texture = *pTexDesc;
	object->has_view = pResViewDesc != NULL;
	if (pResViewDesc)
		object->view = *pResViewDesc;
	softgpu_texture_bind(object->number, &image, &sampler);
	*pTexObject = object->number;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	struct texture_object *object;
	CUresult result = find_object(texObject, SOFTGPU_TEXTURE_OBJECT, &object);
	if (!result)
		owned_destroy(&object->owned);
	return result;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	struct texture_object *object;
	CUresult result = find_to_tell(texObject, SOFTGPU_TEXTURE_OBJECT, pResDesc, &object);
	if (!result)
		*pResDesc = object->resource;
	return result;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	struct texture_object *object;
	CUresult result = find_to_tell(texObject, SOFTGPU_TEXTURE_OBJECT, pTexDesc, &object);
	if (!result)
		*pTexDesc = object->texture;
	return result;
}

/* CUDA_ERROR_INVALID_VALUE: the object was made without a view. */
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	struct texture_object *object;
	CUresult result = find_to_tell(texObject, SOFTGPU_TEXTURE_OBJECT, pResViewDesc, &object);
	if (result || !object->has_view)
		return result ? result : CUDA_ERROR_INVALID_VALUE;
	*pResViewDesc = object->view;
	return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	CUcontext context;
	softgpu_image_t image;
	struct texture_object *object;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	result = texture_resource_image(pResDesc, NULL, &image);
	if (!result && !(pResDesc->res.array.hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = make_object(context, SOFTGPU_SURFACE_OBJECT, &object);
	if (result)
		return result;
	object->resource = *pResDesc;
	softgpu_texture_bind(object->number, &image, NULL);
	*pSurfObject = object->number;
	return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	struct texture_object *object;
	CUresult result = find_object(surfObject, SOFTGPU_SURFACE_OBJECT, &object);
	if (!result)
		owned_destroy(&object->owned);
	return result;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	struct texture_object *object;
	CUresult result = find_to_tell(surfObject, SOFTGPU_SURFACE_OBJECT, pResDesc, &object);
	if (!result)
		*pResDesc = object->resource;
	return result;
}
