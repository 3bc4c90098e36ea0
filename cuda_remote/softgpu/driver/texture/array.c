/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA arrays and mipmapped arrays: limits, layout in memory, creation and destruction. */
#include "cuda_remote/softgpu/driver/texture/array.h"

#include "cuda_remote/softgpu/driver/texture/array_format.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/space/space.h"

#define ROW_ALIGNMENT 16u /* a texel is as large at most */

/* ---- limits */
static bool at_most(const CUDA_ARRAY3D_DESCRIPTOR *d, size_t width, size_t height, size_t depth)
{
	return d->Width >= 1 && d->Width <= width && d->Height <= height && d->Depth <= depth;
}

static bool cube_fits(const CUDA_ARRAY3D_DESCRIPTOR *d, bool layered)
{
	if (d->Width != d->Height || !d->Depth || (layered ? d->Depth % 6 : d->Depth != 6))
		return false;
	return at_most(d, ARRAY_MAX_CUBE, ARRAY_MAX_CUBE, layered ? ARRAY_MAX_CUBE_LAYERS : 6);
}

static bool extents_fit(const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, surface = d->Flags & CUDA_ARRAY3D_SURFACE_LDST;
	if ((d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) &&
	    (!d->Height || (d->Depth && !layered) || !at_most(d, ARRAY_MAX_GATHER, ARRAY_MAX_GATHER, ARRAY_MAX_LAYERS)))
		return false;
	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return cube_fits(d, layered);
	if (layered)
		return d->Depth && at_most(d, ARRAY_MAX_LAYERED, ARRAY_MAX_LAYERED, ARRAY_MAX_LAYERS);
	if (d->Depth)
		return d->Height && at_most(d, ARRAY_MAX_3D, ARRAY_MAX_3D, ARRAY_MAX_3D);
	if (mipmapped)
		return at_most(d, ARRAY_MAX_MIPMAPPED, ARRAY_MAX_MIPMAPPED, 0);
	if (d->Height)
		return at_most(d, ARRAY_MAX_2D_WIDTH, ARRAY_MAX_2D_HEIGHT, 0);
	return at_most(d, surface ? ARRAY_MAX_SURFACE_1D : ARRAY_MAX_1D, 0, 0);
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped, softgpu_image_t *image)
{
	const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
			       CUDA_ARRAY3D_TEXTURE_GATHER;
	const unsigned refused = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE |
				 CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
	if (d->Flags & ~(known | refused))
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & refused)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = array_format(d->Format, d->NumChannels, image);
	if (result)
		return result;
	return extents_fit(d, mipmapped) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- layout */
static size_t one_at_least(size_t n)
{
	return n ? n : 1;
}

/* The descriptor of a level: an extent of 0 stays 0, the number of layers does not change. */
static CUDA_ARRAY3D_DESCRIPTOR level_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *base, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR d = *base;
	d.Width = one_at_least(base->Width >> level);
	d.Height = base->Height ? one_at_least(base->Height >> level) : 0;
	if (!(base->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && base->Depth)
		d.Depth = one_at_least(base->Depth >> level);
	return d;
}

/* Places a level at offset in the array's memory; returns where it ends. */
static uint64_t lay_out(const CUDA_ARRAY3D_DESCRIPTOR *d, uint32_t texel, uint64_t offset, softgpu_level_t *level)
{
	uint64_t pitch = ((uint64_t)d->Width * texel + ROW_ALIGNMENT - 1) & ~(uint64_t)(ROW_ALIGNMENT - 1);
	*level = (softgpu_level_t){ .base = offset, .width = (uint32_t)d->Width,
				    .height = (uint32_t)one_at_least(d->Height),
				    .depth = (uint32_t)one_at_least(d->Depth), .pitch = pitch };
	level->slice = pitch * level->height;
	return offset + level->slice * level->depth;
}

static CUresult allocate(CUcontext context, uint64_t bytes, uint64_t *memory)
{
	/* Memory that the program can neither free nor access by a pointer. */
	softgpu_allocation_t want = { .size = bytes, .kind = SOFTGPU_SPACE_MODULE, .device = context->physical,
				      .owner = context };
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = want.base;
	return CUDA_SUCCESS;
}

static CUarray new_array(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint32_t texel, uint64_t *end)
{
	static uint64_t last_id;
	CUarray array = handle_new(HANDLE_ARRAY, sizeof *array);
	if (!array)
		return NULL;
	array->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	array->descriptor = *descriptor;
	array->texel = texel;
	*end = lay_out(descriptor, texel, *end, &array->level);
	return array;
}

static void forget(CUarray array)
{
	handle_retire(array);
	handle_release(array);
}

static void place(CUarray array, uint64_t memory, uint64_t bytes)
{
	array->memory = memory;
	array->bytes = bytes;
	array->level.base += memory;
}

/* ---- arrays */
static void destroy_array(owned_t *owned)
{
	CUarray array = OWNER_OF(owned, struct CUarray_st);
	softgpu_space_free(array->memory);
	forget(array);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_image_t image;
	result = check(pAllocateArray, false, &image);
	if (result)
		return result;
	uint64_t bytes = 0, memory;
	CUarray array = new_array(pAllocateArray, image.texel, &bytes);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = allocate(context, bytes, &memory);
	if (result) {
		forget(array);
		return result;
	}
	place(array, memory, bytes);
	owned_add(&context->owned, &array->owned, OWNED_TEXTURE, destroy_array);
	*pHandle = array;
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	if (!pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { .Width = pAllocateArray->Width, .Height = pAllocateArray->Height,
					       .Format = pAllocateArray->Format,
					       .NumChannels = pAllocateArray->NumChannels };
	return cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult cuArrayDestroy(CUarray hArray)
{
	CUresult result = context_enter_handle(hArray, HANDLE_ARRAY);
	if (!result)
		result = capture_refuse_unsafe();
	if (result)
		return result;
	/* A level is destroyed with its mipmapped array. */
	if (hArray->mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	owned_destroy(&hArray->owned);
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUresult result = context_enter_handle(hArray, HANDLE_ARRAY);
	if (result)
		return result;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	*pArrayDescriptor = hArray->descriptor;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuArray3DGetDescriptor_v2(&descriptor, hArray);
	if (!result)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){ descriptor.Width, descriptor.Height, descriptor.Format,
							     descriptor.NumChannels };
	return result;
}

/* ---- mipmapped arrays */
static void forget_mipmap(CUmipmappedArray mipmap)
{
	for (unsigned n = 0; n < mipmap->levels; n++)
		forget(mipmap->level[n]);
	handle_retire(mipmap);
	handle_release(mipmap);
}

static void destroy_mipmap(owned_t *owned)
{
	CUmipmappedArray mipmap = OWNER_OF(owned, struct CUmipmappedArray_st);
	softgpu_space_free(mipmap->memory);
	forget_mipmap(mipmap);
}

/* At most as many levels as there are down to one texel. */
static unsigned level_count(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned wanted)
{
	bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	size_t longest = d->Width > d->Height ? d->Width : d->Height;
	unsigned most = 1;
	if (!layered && d->Depth > longest)
		longest = d->Depth;
	while (longest >>= 1)
		most++;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

static CUresult make_levels(CUmipmappedArray mipmap, uint32_t texel, unsigned count)
{
	for (; mipmap->levels < count; mipmap->levels++) {
		CUDA_ARRAY3D_DESCRIPTOR d = level_descriptor(&mipmap->descriptor, mipmap->levels);
		CUarray level = new_array(&d, texel, &mipmap->bytes);
		if (!level)
			return CUDA_ERROR_OUT_OF_MEMORY;
		level->mipmap = mipmap;
		mipmap->level[mipmap->levels] = level;
	}
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
				unsigned int numMipmapLevels)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	softgpu_image_t image;
	if (!pHandle || !pMipmappedArrayDesc)
		return CUDA_ERROR_INVALID_VALUE;
	result = check(pMipmappedArrayDesc, true, &image);
	if (result)
		return result;
	CUmipmappedArray mipmap = handle_new(HANDLE_MIPMAP, sizeof *mipmap);
	if (!mipmap)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mipmap->descriptor = *pMipmappedArrayDesc;
	result = make_levels(mipmap, image.texel, level_count(pMipmappedArrayDesc, numMipmapLevels));
	if (!result)
		result = allocate(context, mipmap->bytes, &mipmap->memory);
	if (result) {
		forget_mipmap(mipmap);
		return result;
	}
	for (unsigned n = 0; n < mipmap->levels; n++)
		place(mipmap->level[n], mipmap->memory, mipmap->bytes);
	owned_add(&context->owned, &mipmap->owned, OWNED_TEXTURE, destroy_mipmap);
	*pHandle = mipmap;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	CUresult result = context_enter_handle(hMipmappedArray, HANDLE_MIPMAP);
	if (result)
		return result;
	if (!pLevelArray || level >= hMipmappedArray->levels)
		return CUDA_ERROR_INVALID_VALUE;
	*pLevelArray = hMipmappedArray->level[level];
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	CUresult result = context_enter_handle(hMipmappedArray, HANDLE_MIPMAP);
	if (!result)
		result = capture_refuse_unsafe();
	if (result)
		return result;
	owned_destroy(&hMipmappedArray->owned);
	return CUDA_SUCCESS;
}

/* ---- queries of arrays that cannot be created here; the errors are those that CUDA returns for other arrays */
CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	CUresult result = context_enter_handle(hArray, HANDLE_ARRAY);
	(void)pPlaneArray;
	(void)planeIdx;
	return result ? result : CUDA_ERROR_INVALID_VALUE; /* its format is not planar */
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	CUresult result = context_enter_handle(array, HANDLE_ARRAY);
	(void)sparseProperties;
	return result ? result : CUDA_ERROR_INVALID_VALUE; /* it is not sparse */
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	CUresult result = context_enter_handle(mipmap, HANDLE_MIPMAP);
	(void)sparseProperties;
	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
				      CUdevice device)
{
	CUresult result = context_enter_handle(array, HANDLE_ARRAY);
	(void)memoryRequirements;
	(void)device;
	return result ? result : CUDA_ERROR_INVALID_VALUE; /* its mapping is not deferred */
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
					       CUmipmappedArray mipmap, CUdevice device)
{
	CUresult result = context_enter_handle(mipmap, HANDLE_MIPMAP);
	(void)memoryRequirements;
	(void)device;
	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

/* ---- for copies and textures */
static void describe_image(const CUDA_ARRAY3D_DESCRIPTOR *d, uint64_t memory, uint64_t bytes, softgpu_image_t *image)
{
	*image = (softgpu_image_t){ .memory = memory, .bytes = bytes };
	/* The format was checked when the array was created. */
	array_format(d->Format, d->NumChannels, image);
	image->layered = d->Flags & CUDA_ARRAY3D_LAYERED;
	image->cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
	image->dimensions = !d->Height ? 1 : d->Depth && !image->layered && !image->cube ? 3 : 2;
}

void array_image(CUarray array, softgpu_image_t *image)
{
	describe_image(&array->descriptor, array->memory, array->bytes, image);
	image->levels = 1;
	image->level[0] = array->level;
}

void mipmap_image(CUmipmappedArray mipmap, softgpu_image_t *image)
{
	describe_image(&mipmap->descriptor, mipmap->memory, mipmap->bytes, image);
	image->mipmapped = true;
	image->levels = mipmap->levels;
	for (unsigned n = 0; n < mipmap->levels; n++)
		image->level[n] = mipmap->level[n]->level;
}

static bool inside(size_t at, size_t count, size_t size)
{
	return at <= size && count <= size - at;
}

CUresult array_copy_side(CUarray array, size_t x, size_t y, size_t z, const copy_box_t *box, copy_side_t *side)
{
	if (!handle_valid(array, HANDLE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	const softgpu_level_t *level = &array->level;
	if (x % array->texel || box->width % array->texel ||
	    !inside(x, box->width, (size_t)level->width * array->texel) || !inside(y, box->height, level->height) ||
	    !inside(z, box->depth, level->depth))
		return CUDA_ERROR_INVALID_VALUE;
	*side = (copy_side_t){ COPY_DEVICE, level->base + z * level->slice + y * level->pitch + x, level->pitch,
			       level->slice };
	return CUDA_SUCCESS;
}

CUresult array_row_side(CUarray array, size_t offset, size_t bytes, copy_side_t *side)
{
	copy_box_t box = { .width = bytes, .height = 1, .depth = 1 };
	if (handle_valid(array, HANDLE_ARRAY) && (array->level.height > 1 || array->level.depth > 1))
		return CUDA_ERROR_INVALID_VALUE;
	return array_copy_side(array, offset, 0, 0, &box, side);
}
