/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture objects through the runtime: each kind of resource and fetch function, against values worked out by hand. */
#include "program.cuh"

#include <cmath>
#include <cstring>
#include <vector>

static cudaTextureObject_t object(cudaArray_t array, cudaTextureAddressMode mode, cudaTextureFilterMode filter,
				  cudaTextureReadMode read, bool normalized)
{
	cudaTextureObject_t texture;
	cudaResourceDesc resource = {};
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	cudaTextureDesc description = {};
	for (auto &each : description.addressMode)
		each = mode;
	description.filterMode = filter;
	description.readMode = read;
	description.normalizedCoords = normalized;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	return texture;
}

__global__ void fetch_2d(cudaTextureObject_t texture, const float2 *at, float *out)
{
	out[threadIdx.x] = tex2D<float>(texture, at[threadIdx.x].x, at[threadIdx.x].y);
}

static std::vector<float> fetched(cudaTextureObject_t texture, const std::vector<float2> &at)
{
	float2 *in;
	float *out;
	std::vector<float> result(at.size());
	CHECK(cudaMalloc(&in, at.size() * sizeof(float2)));
	CHECK(cudaMalloc(&out, at.size() * sizeof(float)));
	CHECK(cudaMemcpy(in, at.data(), at.size() * sizeof(float2), cudaMemcpyHostToDevice));
	fetch_2d<<<1, (unsigned)at.size()>>>(texture, in, out);
	CHECK(cudaMemcpy(result.data(), out, at.size() * sizeof(float), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(in));
	CHECK(cudaFree(out));
	return result;
}

static void filtering_and_addressing()
{
	/* T(x, y) = x + 10 y, 4 by 3 */
	float texels[3][4];
	for (int n = 0; n < 12; n++)
		texels[n / 4][n % 4] = (float)(n % 4 + 10 * (n / 4));
	auto channel = cudaCreateChannelDesc<float>();
	cudaArray_t array;
	CHECK(cudaMallocArray(&array, &channel, 4, 3));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 3, cudaMemcpyHostToDevice));
	auto linear = object(array, cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, false);
	auto a = fetched(linear, { { 0.5f, 0.5f }, { 1.0f, 1.0f }, { 2.75f, 1.5f }, { -3, 0.5f }, { 9, 9 },
				   { 1.5f, 2.25f } });
	EXPECT(a[0] == 0 && a[1] == 5.5f && a[2] == 12.25f && a[3] == 0 && a[4] == 23 && a[5] == 18.5f);
	auto wrap = object(array, cudaAddressModeWrap, cudaFilterModePoint, cudaReadModeElementType, true);
	auto b = fetched(wrap, { { 1.125f, 0.5f }, { -0.125f, 0.5f }, { 0.5f, -0.1f }, { 3.99f, 2.0f } });
	EXPECT(b[0] == 10 && b[1] == 13 && b[2] == 22 && b[3] == 3);
	auto mirror = object(array, cudaAddressModeMirror, cudaFilterModePoint, cudaReadModeElementType, true);
	auto c = fetched(mirror, { { 1.125f, 0.5f }, { -0.125f, 0.5f }, { 2.125f, 1.1f } });
	EXPECT(c[0] == 13 && c[1] == 10 && c[2] == 20);
	auto border = object(array, cudaAddressModeBorder, cudaFilterModeLinear, cudaReadModeElementType, false);
	auto d = fetched(border, { { 4.0f, 1.5f }, { 4.5f, 1.5f }, { 3.5f, 1.5f } });
	EXPECT(d[0] == 6.5f && d[1] == 0 && d[2] == 13);
	cudaTextureDesc told;
	CHECK(cudaGetTextureObjectTextureDesc(&told, mirror));
	EXPECT(told.addressMode[1] == cudaAddressModeMirror && told.normalizedCoords &&
	       told.readMode == cudaReadModeElementType);
	for (auto each : { linear, wrap, mirror, border })
		CHECK(cudaDestroyTextureObject(each));
	EXPECT(cudaDestroyTextureObject(linear) == cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFreeArray(array));
}

__global__ void fetch_kinds(cudaTextureObject_t bytes, cudaTextureObject_t floats, uchar4 *as_bytes, float4 *as_floats)
{
	as_bytes[threadIdx.x] = tex1D<uchar4>(bytes, threadIdx.x + 0.5f);
	as_floats[threadIdx.x] = tex1D<float4>(floats, threadIdx.x + 0.5f);
}

static void read_modes()
{
	uchar4 texels[8], *as_bytes;
	float4 *as_floats;
	for (int n = 0; n < 8; n++)
		texels[n] = make_uchar4(n, 255 - n, 17 * n, 255);
	auto channel = cudaCreateChannelDesc<uchar4>();
	cudaArray_t array;
	CHECK(cudaMallocArray(&array, &channel, 8));
	CHECK(cudaMemcpyToArray(array, 0, 0, texels, sizeof texels, cudaMemcpyHostToDevice));
	auto bytes = object(array, cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, false);
	auto floats = object(array, cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeNormalizedFloat, false);
	/* Integers as such cannot be filtered; anything else that is wrong is an invalid value. */
	cudaTextureObject_t none;
	cudaResourceDesc resource = {};
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	cudaTextureDesc wrong = {};
	wrong.filterMode = cudaFilterModeLinear;
	EXPECT_ERROR(cudaErrorInvalidFilterSetting, cudaCreateTextureObject(&none, &resource, &wrong, nullptr));
	wrong.readMode = cudaReadModeNormalizedFloat;
	wrong.filterMode = (cudaTextureFilterMode)2;
	EXPECT_ERROR(cudaErrorInvalidValue, cudaCreateTextureObject(&none, &resource, &wrong, nullptr));
	CHECK(cudaMallocManaged(&as_bytes, sizeof texels));
	CHECK(cudaMallocManaged(&as_floats, 8 * sizeof(float4)));
	fetch_kinds<<<1, 8>>>(bytes, floats, as_bytes, as_floats);
	CHECK(cudaDeviceSynchronize());
	EXPECT(!memcmp(as_bytes, texels, sizeof texels));
	for (int n = 0; n < 8; n++)
		EXPECT(as_floats[n].x == (float)(n / 255.0) && as_floats[n].y == (float)((255 - n) / 255.0) &&
		       as_floats[n].w == 1);
	CHECK(cudaDestroyTextureObject(bytes));
	CHECK(cudaDestroyTextureObject(floats));
	CHECK(cudaFreeArray(array));
	CHECK(cudaFree(as_bytes));
	CHECK(cudaFree(as_floats));
}

__global__ void fetch_linear(cudaTextureObject_t row, cudaTextureObject_t rows, int *a, float *b)
{
	a[threadIdx.x] = tex1Dfetch<int>(row, (int)threadIdx.x - 2);
	b[threadIdx.x] = tex2D<float>(rows, threadIdx.x + 1.0f, 1.5f);
}

static void linear_memory()
{
	int *memory, *a;
	float *pitched, *b;
	size_t pitch;
	CHECK(cudaMallocManaged(&memory, 40));
	CHECK(cudaMallocManaged(&a, 64));
	CHECK(cudaMallocManaged(&b, 64));
	for (int n = 0; n < 10; n++)
		memory[n] = 100 + n;
	CHECK(cudaMallocPitch(&pitched, &pitch, 20 * 4, 3));
	float row[20];
	for (int n = 0; n < 20; n++)
		row[n] = (float)(n * n);
	CHECK(cudaMemcpy((char *)pitched + pitch, row, sizeof row, cudaMemcpyHostToDevice));
	cudaResourceDesc resource = {}, told;
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<int>();
	resource.res.linear.sizeInBytes = 40;
	cudaTextureDesc description = {};
	cudaTextureObject_t first, second;
	CHECK(cudaCreateTextureObject(&first, &resource, &description, nullptr));
	CHECK(cudaGetTextureObjectResourceDesc(&told, first));
	EXPECT(told.res.linear.devPtr == memory && told.res.linear.desc.x == 32 &&
	       told.res.linear.desc.f == cudaChannelFormatKindSigned);
	resource = {};
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = pitched;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	resource.res.pitch2D.width = 20;
	resource.res.pitch2D.height = 3;
	resource.res.pitch2D.pitchInBytes = pitch;
	description.filterMode = cudaFilterModeLinear;
	description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
	CHECK(cudaCreateTextureObject(&second, &resource, &description, nullptr));
	fetch_linear<<<1, 16>>>(first, second, a, b);
	CHECK(cudaDeviceSynchronize());
	for (int n = 0; n < 16; n++) {
		EXPECT(a[n] == (n >= 2 && n < 12 ? 98 + n : 0));
		EXPECT(b[n] == (n * n + (n + 1) * (n + 1)) / 2.0f);
	}
	CHECK(cudaDestroyTextureObject(first));
	CHECK(cudaDestroyTextureObject(second));
	CHECK(cudaFree(memory));
	CHECK(cudaFree(pitched));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

__global__ void fetch_levels(cudaTextureObject_t texture, float *out)
{
	out[threadIdx.x] = tex2DLod<float>(texture, 0.5f, 0.5f, threadIdx.x * 0.5f);
	out[8 + threadIdx.x] = tex2DGrad<float>(texture, 0.5f, 0.5f, make_float2((1 << threadIdx.x) / 16.0f, 0),
						make_float2(0, 0));
}

static void mipmaps()
{
	float texels[16 * 16], *out;
	auto channel = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t mipmap;
	CHECK(cudaMallocMipmappedArray(&mipmap, &channel, make_cudaExtent(16, 16, 0), 5));
	for (unsigned n = 0; n < 5; n++) {
		cudaArray_t level;
		for (auto &each : texels)
			each = (float)n;
		CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, n));
		CHECK(cudaMemcpy2DToArray(level, 0, 0, texels, 64, (16 >> n) * 4, 16 >> n, cudaMemcpyHostToDevice));
	}
	cudaResourceDesc resource = {};
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	cudaTextureDesc description = {};
	description.normalizedCoords = 1;
	description.filterMode = description.mipmapFilterMode = cudaFilterModeLinear;
	description.maxMipmapLevelClamp = 3;
	cudaTextureObject_t texture;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	CHECK(cudaMallocManaged(&out, 64));
	fetch_levels<<<1, 8>>>(texture, out);
	CHECK(cudaDeviceSynchronize());
	for (int n = 0; n < 8; n++) {
		EXPECT(out[n] == fminf(n * 0.5f, 3));
		EXPECT(out[8 + n] == fminf((float)n, 3));
	}
	CHECK(cudaDestroyTextureObject(texture));
	cudaResourceViewDesc view = {}, told;
	view.format = cudaResViewFormatFloat1;
	view.width = view.height = 16;
	view.firstMipmapLevel = 1;
	view.lastMipmapLevel = 2;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, &view));
	CHECK(cudaGetTextureObjectResourceViewDesc(&told, texture));
	EXPECT(told.lastMipmapLevel == 2);
	fetch_levels<<<1, 8>>>(texture, out);
	CHECK(cudaDeviceSynchronize());
	for (int n = 0; n < 8; n++)
		EXPECT(out[n] == 1 + fminf(n * 0.5f, 1));
	CHECK(cudaDestroyTextureObject(texture));
	description.normalizedCoords = 0;
	EXPECT_ERROR(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	(void)cudaGetLastError();
	CHECK(cudaFreeMipmappedArray(mipmap));
	CHECK(cudaFree(out));
}

__global__ void fetch_shapes(cudaTextureObject_t layers, cudaTextureObject_t cube, cudaTextureObject_t volume,
			     float *out)
{
	int n = threadIdx.x;
	out[n] = tex2DLayered<float>(layers, 1.5f, 0.5f, n);
	const float3 axes[6] = { { 1, 0, 0 }, { -1, 0, 0 }, { 0, 1, 0 }, { 0, -1, 0 }, { 0, 0, 1 }, { 0, 0, -1 } };
	out[8 + n] = n < 6 ? texCubemap<float>(cube, axes[n].x, axes[n].y, axes[n].z) : 0;
	out[16 + n] = tex3D<float>(volume, 0.5f, 1.5f, n + 0.5f);
	float4 four = tex2Dgather<float4>(layers, 1.0f, 1.0f, 0);
	out[24 + n] = n == 0 ? four.x : n == 1 ? four.y : n == 2 ? four.z : four.w;
}

static void shapes()
{
	/* Six slices of 2 by 2: slice * 10 + y * 2 + x */
	float texels[6][2][2], *out;
	for (int n = 0; n < 24; n++)
		texels[n / 4][n / 2 % 2][n % 2] = (float)(n / 4 * 10 + n % 4);
	auto channel = cudaCreateChannelDesc<float>();
	cudaArray_t arrays[3];
	const unsigned flags[3] = { cudaArrayLayered, cudaArrayCubemap, 0 };
	for (int n = 0; n < 3; n++) {
		CHECK(cudaMalloc3DArray(&arrays[n], &channel, make_cudaExtent(2, 2, 6), flags[n]));
		cudaMemcpy3DParms copy = {};
		copy.srcPtr = make_cudaPitchedPtr(texels, 8, 2, 2);
		copy.dstArray = arrays[n];
		copy.extent = make_cudaExtent(2, 2, 6);
		copy.kind = cudaMemcpyHostToDevice;
		CHECK(cudaMemcpy3D(&copy));
	}
	auto layers = object(arrays[0], cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, false);
	auto cube = object(arrays[1], cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, true);
	auto volume = object(arrays[2], cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, false);
	CHECK(cudaMallocManaged(&out, 128));
	fetch_shapes<<<1, 8>>>(layers, cube, volume, out);
	CHECK(cudaDeviceSynchronize());
	for (int n = 0; n < 8; n++) {
		int last = n < 5 ? n : 5;
		EXPECT(out[n] == last * 10 + 1);
		EXPECT(out[8 + n] == (n < 6 ? n * 10 + 1.5f : 0));
		EXPECT(out[16 + n] == last * 10 + 2);
	}
	EXPECT(out[24] == 2 && out[25] == 3 && out[26] == 1 && out[27] == 0);
	for (auto each : { layers, cube, volume })
		CHECK(cudaDestroyTextureObject(each));
	for (auto each : arrays)
		CHECK(cudaFreeArray(each));
	CHECK(cudaFree(out));
}

int main()
{
	cudaArray_t array;
	cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
	skip_if_not_across("arrays", cudaMallocArray(&array, &channel, 4, 3));
	CHECK(cudaFreeArray(array));
	filtering_and_addressing();
	void *managed;
	skip_if_not_across("managed memory", cudaMallocManaged(&managed, 4));
	CHECK(cudaFree(managed));
	read_modes();
	linear_memory();
	mipmaps();
	shapes();
	return 0;
}
