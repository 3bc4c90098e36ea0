/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texture and surface references, which CUDA keeps for old modules. A reference has the state of a texture object,
 * which is set by separate calls. A change applies to kernels launched afterwards.
 */
#include "cuda_remote/softgpu/driver/module/module.h"
#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/softgpu/driver/texture/array_format.h"
#include "cuda_remote/softgpu/driver/texture/texture_resource.h"
#include "cuda_remote/softgpu/space/space.h"

struct CUtexref_st {
	struct module_reference of;
	bool bound;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUarray_format format; /* of linear memory */
	unsigned channels;
	CUdeviceptr address;   /* as it was given */
};

struct CUsurfref_st {
	struct module_reference of;
	CUarray array;
};

static void *new_texture(CUcontext context, uint64_t number)
{
	CUtexref reference = handle_new(HANDLE_TEXTURE_REFERENCE, sizeof *reference);
	if (!reference)
		return NULL;
	reference->of.context = context;
	reference->of.number = number;
	reference->format = CU_AD_FORMAT_FLOAT;
	reference->channels = 1;
	for (int n = 0; n < 3; n++)
		reference->texture.addressMode[n] = CU_TR_ADDRESS_MODE_CLAMP;
	return reference;
}

/* Passes the state to the engine. While the state is inconsistent, nothing is bound. */
static void rebind(CUtexref reference)
{
	softgpu_image_t image;
	softgpu_sampler_t sampler;
	bool fits = reference->bound && !texture_resource_image(&reference->resource, NULL, &image) &&
		    !texture_resource_sampler(&reference->texture, &image, &sampler);
	if (!reference->of.number)
		return;
	queue_wait_group(&reference->of.context->group);
	softgpu_texture_bind(reference->of.number, fits ? &image : NULL, &sampler);
}

/* ---- references of modules */
static void *new_surface(CUcontext context, uint64_t number)
{
	CUsurfref reference = handle_new(HANDLE_SURFACE_REFERENCE, sizeof *reference);
	if (!reference)
		return NULL;
	reference->of.context = context;
	reference->of.number = number;
	return reference;
}

/* The module's reference with this kind and name; the first call creates it. */
static CUresult find(CUmodule module, const char *name, enum softgpu_texture_kind kind, void **output)
{
	bool texture = kind == SOFTGPU_TEXTURE_REFERENCE;
	struct module_reference **first = texture ? &module->first_texture : &module->first_surface;
	uint64_t number;
	CUresult result = softgpu_program_reference(module->program, name, kind, &number);
	if (result)
		return result;
	pthread_mutex_lock(&module->context->lock);
	struct module_reference *reference = *first;
	while (reference && reference->number != number)
		reference = reference->next;
	if (!reference) {
		reference = (texture ? new_texture : new_surface)(module->context, number);
		if (reference) {
			reference->next = *first;
			*first = reference;
		}
	}
	pthread_mutex_unlock(&module->context->lock);
	if (!reference)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*output = reference;
	return CUDA_SUCCESS;
}

/* find for a call with an output, which must not be NULL. */
static CUresult get(const void *place, CUmodule module, const char *name, enum softgpu_texture_kind kind, void **found)
{
	CUresult result = context_enter_handle(module, HANDLE_MODULE);
	if (!result && (!place || !name))
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : find(module, name, kind, found);
}

CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	void *found;
	CUresult result = get(pTexRef, hmod, name, SOFTGPU_TEXTURE_REFERENCE, &found);
	if (!result)
		*pTexRef = found;
	return result;
}

CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	void *found;
	CUresult result = get(pSurfRef, hmod, name, SOFTGPU_SURFACE_REFERENCE, &found);
	if (!result)
		*pSurfRef = found;
	return result;
}

/* ---- references of no module, which no kernel reads */
CUresult cuTexRefCreate(CUtexref *pTexRef)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pTexRef)
		return CUDA_ERROR_INVALID_VALUE;
	*pTexRef = new_texture(context, 0);
	return *pTexRef ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuTexRefDestroy(CUtexref hTexRef)
{
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	if (result)
		return result;
	if (hTexRef->of.number)
		return CUDA_ERROR_INVALID_VALUE;
	handle_retire(hTexRef);
	handle_release(hTexRef);
	return CUDA_SUCCESS;
}

/* ---- the memory that a reference reads */
static CUresult bind(CUtexref reference, const CUDA_RESOURCE_DESC *resource)
{
	softgpu_image_t image;
	CUresult result = texture_resource_image(resource, NULL, &image);
	if (result)
		return result;
	reference->resource = *resource;
	reference->bound = true;
	rebind(reference);
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = hArray };
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	if (result)
		return result;
	if (Flags != CU_TRSA_OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	result = bind(hTexRef, &resource);
	if (result)
		return result;
	hTexRef->format = hArray->descriptor.Format;
	hTexRef->channels = hArray->descriptor.NumChannels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
					.res.mipmap.hMipmappedArray = hMipmappedArray };
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	if (result)
		return result;
	if (Flags != CU_TRSA_OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	result = bind(hTexRef, &resource);
	if (result)
		return result;
	hTexRef->format = hMipmappedArray->descriptor.Format;
	hTexRef->channels = hMipmappedArray->descriptor.NumChannels;
	return CUDA_SUCCESS;
}

/* If the address is not aligned, the aligned address before it is bound, and *ByteOffset is the difference. */
CUresult cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	size_t offset = dptr % SOFTGPU_GRANULE;
	if (result)
		return result;
	if (offset && !ByteOffset)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_LINEAR, .res.linear.devPtr = dptr - offset,
					.res.linear.format = hTexRef->format,
					.res.linear.numChannels = hTexRef->channels,
					.res.linear.sizeInBytes = bytes + offset };
	result = bind(hTexRef, &resource);
	if (result)
		return result;
	hTexRef->address = dptr;
	if (ByteOffset)
		*ByteOffset = offset;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	if (result)
		return result;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_PITCH2D, .res.pitch2D.devPtr = dptr,
					.res.pitch2D.format = desc->Format,
					.res.pitch2D.numChannels = desc->NumChannels,
					.res.pitch2D.width = desc->Width, .res.pitch2D.height = desc->Height,
					.res.pitch2D.pitchInBytes = Pitch };
	result = bind(hTexRef, &resource);
	if (result)
		return result;
	hTexRef->address = dptr;
	hTexRef->format = desc->Format;
	hTexRef->channels = desc->NumChannels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	softgpu_image_t image;
	CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);
	if (!result)
		result = array_format(fmt, (unsigned)NumPackedComponents, &image);
	if (result)
		return result;
	hTexRef->format = fmt;
	hTexRef->channels = (unsigned)NumPackedComponents;
	return CUDA_SUCCESS;
}

/* ---- sampling: SET checks the value, stores it and passes the state to the engine */
#define DEFINE_SET(name, parameters, valid, assignment)                                      \
	CUresult name parameters                                                             \
	{                                                                                    \
		CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);                  \
		if (result || !(valid))                                                      \
			return result ? result : CUDA_ERROR_INVALID_VALUE;                   \
		assignment;                                                                  \
		rebind(hTexRef);                                                             \
		return CUDA_SUCCESS;                                                         \
	}
DEFINE_SET(cuTexRefSetAddressMode, (CUtexref hTexRef, int dim, CUaddress_mode am),
	   dim >= 0 && dim < 3 && (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER, hTexRef->texture.addressMode[dim] = am)
DEFINE_SET(cuTexRefSetFilterMode, (CUtexref hTexRef, CUfilter_mode fm), (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR,
	   hTexRef->texture.filterMode = fm)
DEFINE_SET(cuTexRefSetMipmapFilterMode, (CUtexref hTexRef, CUfilter_mode fm),
	   (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR, hTexRef->texture.mipmapFilterMode = fm)
DEFINE_SET(cuTexRefSetMipmapLevelBias, (CUtexref hTexRef, float bias), true, hTexRef->texture.mipmapLevelBias = bias)
DEFINE_SET(cuTexRefSetMipmapLevelClamp, (CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp), true,
	   (hTexRef->texture.minMipmapLevelClamp = minMipmapLevelClamp,
	    hTexRef->texture.maxMipmapLevelClamp = maxMipmapLevelClamp))
DEFINE_SET(cuTexRefSetMaxAnisotropy, (CUtexref hTexRef, unsigned int maxAniso), true,
	   hTexRef->texture.maxAnisotropy = maxAniso)
DEFINE_SET(cuTexRefSetBorderColor, (CUtexref hTexRef, float *pBorderColor), pBorderColor != NULL,
	   __builtin_memcpy(hTexRef->texture.borderColor, pBorderColor, sizeof hTexRef->texture.borderColor))
DEFINE_SET(cuTexRefSetFlags, (CUtexref hTexRef, unsigned int Flags),
	   !(Flags & ~(unsigned)(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
				 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)),
	   hTexRef->texture.flags = Flags)

/* ---- queries of these values */
#define DEFINE_GET(name, parameters, valid, assignment)                                      \
	CUresult name parameters                                                             \
	{                                                                                    \
		CUresult result = context_enter_handle(hTexRef, HANDLE_TEXTURE_REFERENCE);                  \
		if (result || !(valid))                                                      \
			return result ? result : CUDA_ERROR_INVALID_VALUE;                   \
		assignment;                                                                  \
		return CUDA_SUCCESS;                                                         \
	}
static bool is_bound(CUtexref reference, CUresourcetype type)
{
	return reference->bound && reference->resource.resType == type;
}

DEFINE_GET(cuTexRefGetAddress_v2, (CUdeviceptr *pdptr, CUtexref hTexRef),
	   pdptr && (is_bound(hTexRef, CU_RESOURCE_TYPE_LINEAR) || is_bound(hTexRef, CU_RESOURCE_TYPE_PITCH2D)),
	   *pdptr = hTexRef->address)
DEFINE_GET(cuTexRefGetArray, (CUarray *phArray, CUtexref hTexRef), phArray && is_bound(hTexRef, CU_RESOURCE_TYPE_ARRAY),
	   *phArray = hTexRef->resource.res.array.hArray)
DEFINE_GET(cuTexRefGetMipmappedArray, (CUmipmappedArray *phMipmappedArray, CUtexref hTexRef),
	   phMipmappedArray && is_bound(hTexRef, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
	   *phMipmappedArray = hTexRef->resource.res.mipmap.hMipmappedArray)
DEFINE_GET(cuTexRefGetAddressMode, (CUaddress_mode *pam, CUtexref hTexRef, int dim), pam && dim >= 0 && dim < 3,
	   *pam = hTexRef->texture.addressMode[dim])
DEFINE_GET(cuTexRefGetFilterMode, (CUfilter_mode *pfm, CUtexref hTexRef), pfm != NULL,
	   *pfm = hTexRef->texture.filterMode)
DEFINE_GET(cuTexRefGetFormat, (CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef),
	   pFormat != NULL || pNumChannels != NULL,
	   {
		   if (pFormat)
			   *pFormat = hTexRef->format;
		   if (pNumChannels)
			   *pNumChannels = (int)hTexRef->channels;
	   })
DEFINE_GET(cuTexRefGetMipmapFilterMode, (CUfilter_mode *pfm, CUtexref hTexRef), pfm != NULL,
	   *pfm = hTexRef->texture.mipmapFilterMode)
DEFINE_GET(cuTexRefGetMipmapLevelBias, (float *pbias, CUtexref hTexRef), pbias != NULL,
	   *pbias = hTexRef->texture.mipmapLevelBias)
DEFINE_GET(cuTexRefGetMipmapLevelClamp,
	   (float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef),
	   pminMipmapLevelClamp && pmaxMipmapLevelClamp,
	   (*pminMipmapLevelClamp = hTexRef->texture.minMipmapLevelClamp,
	    *pmaxMipmapLevelClamp = hTexRef->texture.maxMipmapLevelClamp))
DEFINE_GET(cuTexRefGetMaxAnisotropy, (int *pmaxAniso, CUtexref hTexRef), pmaxAniso != NULL,
	   *pmaxAniso = (int)hTexRef->texture.maxAnisotropy)
DEFINE_GET(cuTexRefGetBorderColor, (float *pBorderColor, CUtexref hTexRef), pBorderColor != NULL,
	   __builtin_memcpy(pBorderColor, hTexRef->texture.borderColor, sizeof hTexRef->texture.borderColor))
DEFINE_GET(cuTexRefGetFlags, (unsigned int *pFlags, CUtexref hTexRef), pFlags != NULL, *pFlags = hTexRef->texture.flags)

/* ---- surfaces */
CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	softgpu_image_t image;
	CUresult result = context_enter_handle(hSurfRef, HANDLE_SURFACE_REFERENCE);
	if (result)
		return result;
	if (!handle_valid(hArray, HANDLE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (Flags || !(hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	array_image(hArray, &image);
	queue_wait_group(&hSurfRef->of.context->group);
	softgpu_texture_bind(hSurfRef->of.number, &image, NULL);
	hSurfRef->array = hArray;
	return CUDA_SUCCESS;
}

CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
	CUresult result = context_enter_handle(hSurfRef, HANDLE_SURFACE_REFERENCE);
	if (result)
		return result;
	if (!phArray || !hSurfRef->array)
		return CUDA_ERROR_INVALID_VALUE;
	*phArray = hSurfRef->array;
	return CUDA_SUCCESS;
}
