/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays through the runtime: descriptions, copies that go on from row to row, boxes, layers, levels, surfaces. */
#include "program.cuh"

#include <cstring>
#include <vector>

static void descriptions()
{
	struct { cudaChannelFormatDesc channel; bool good; } cases[] = {
		{ cudaCreateChannelDesc<float>(), true },   { cudaCreateChannelDesc<uchar4>(), true },
		{ cudaCreateChannelDesc<short2>(), true },
		{ cudaCreateChannelDesc(16, 16, 16, 16, cudaChannelFormatKindFloat), true },
		{ cudaCreateChannelDesc(8, 8, 0, 0, cudaChannelFormatKindUnsignedNormalized8X2), true },
		{ cudaCreateChannelDesc(10, 10, 10, 2, cudaChannelFormatKindUnsignedNormalized1010102), true },
		{ cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat), false },
		{ cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned), false },
		{ cudaCreateChannelDesc(64, 0, 0, 0, cudaChannelFormatKindFloat), false },
		{ cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindNone), false },
	};
	for (auto &c : cases) {
		cudaArray_t array = nullptr;
		cudaError_t got = cudaMallocArray(&array, &c.channel, 9, 5, cudaArraySurfaceLoadStore);
		EXPECT(got == (c.good ? cudaSuccess : cudaErrorInvalidChannelDescriptor));
		(void)cudaGetLastError();
		if (!c.good)
			continue;
		cudaChannelFormatDesc told;
		cudaExtent extent;
		unsigned flags;
		CHECK(cudaArrayGetInfo(&told, &extent, &flags, array));
		EXPECT(!memcmp(&told, &c.channel, sizeof told) && extent.width == 9 && extent.height == 5 &&
		       extent.depth == 0);
		EXPECT(flags == cudaArraySurfaceLoadStore);
		CHECK(cudaGetChannelDesc(&told, array));
		EXPECT(told.f == c.channel.f);
		CHECK(cudaFreeArray(array));
		EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaFreeArray(array));
	}
	CHECK(cudaFreeArray(nullptr));
	(void)cudaGetLastError();
}

/* Rows of 7 shorts, whose ends no copy may step over or lose. */
static void from_row_to_row()
{
	enum { W = 7, H = 9 };
	std::vector<short> in(W * H), out(W * H + 1, -1), want(W * H, 0);
	for (int n = 0; n < W * H; n++)
		in[n] = (short)(n * 31 + 7);
	auto channel = cudaCreateChannelDesc<short>();
	cudaArray_t a, b;
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocArray(&a, &channel, W, H));
	CHECK(cudaMallocArray(&b, &channel, W + 4, H));
	CHECK(cudaMemcpyToArray(a, 0, 0, want.data(), W * H * 2, cudaMemcpyHostToDevice));
	/* 40 elements from (3, 1) on. */
	CHECK(cudaMemcpyToArray(a, 3 * 2, 1, in.data(), 40 * 2, cudaMemcpyHostToDevice));
	for (int n = 0; n < 40; n++)
		want[W + 3 + n] = in[n];
	CHECK(cudaMemcpyFromArray(out.data(), a, 0, 0, W * H * 2, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(out.data(), want.data(), W * H * 2) && out[W * H] == -1);
	/* Into rows of another length, and back out of the middle of one. */
	CHECK(cudaMemcpyArrayToArray(b, 2 * 2, 0, a, 5 * 2, 1, 30 * 2, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpyFromArrayAsync(out.data(), b, 4 * 2, 0, 20 * 2, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(!memcmp(out.data(), &want[W + 5 + 2], 20 * 2));
	CHECK(cudaMemcpyToArrayAsync(a, 0, 8, in.data(), W * 2, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy2DFromArray(out.data(), W * 2, a, 0, 8, W * 2, 1, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(out.data(), in.data(), W * 2));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyToArray(a, 0, 8, in.data(), W * 2 + 2, cudaMemcpyHostToDevice));
	EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpyToArray(a, 0, 0, in.data(), 2, cudaMemcpyDeviceToHost));
	(void)cudaGetLastError();
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	CHECK(cudaStreamDestroy(stream));
}

static void boxes()
{
	enum { W = 6, H = 5 };
	float in[H][W], out[H][W];
	for (int n = 0; n < W * H; n++)
		in[n / W][n % W] = (float)n;
	memset(out, 0, sizeof out);
	auto channel = cudaCreateChannelDesc<float>();
	cudaArray_t a, b;
	CHECK(cudaMallocArray(&a, &channel, W, H));
	CHECK(cudaMallocArray(&b, &channel, W, H));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, in, sizeof in[0], sizeof in[0], H, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(b, 8, 2, a, 4, 1, 16, 3, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArrayAsync(out, sizeof out[0], b, 8, 2, 16, 3, cudaMemcpyDeviceToHost));
	CHECK(cudaDeviceSynchronize());
	for (int n = 0; n < 12; n++)
		EXPECT(out[n / 4][n % 4] == in[n / 4 + 1][n % 4 + 1]);
	EXPECT(out[0][4] == 0 && out[3][0] == 0);
	EXPECT_ERROR(cudaErrorInvalidPitchValue, cudaMemcpy2DToArray(a, 0, 0, in, 20, 24, 2, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

static void layers_and_volumes()
{
	enum { W = 5, H = 4, D = 3 };
	int2 in[D][H][W], out[D][H][W];
	for (int n = 0; n < W * H * D; n++)
		in[n / W / H][n / W % H][n % W] = make_int2(n, -n);
	auto channel = cudaCreateChannelDesc<int2>();
	for (unsigned flags : { 0u, (unsigned)cudaArrayLayered }) {
		cudaArray_t array;
		CHECK(cudaMalloc3DArray(&array, &channel, make_cudaExtent(W, H, D), flags));
		cudaMemcpy3DParms up = {};
		up.srcPtr = make_cudaPitchedPtr(in, W * sizeof(int2), W, H);
		up.dstArray = array;
		up.extent = make_cudaExtent(W, H, D);
		up.kind = cudaMemcpyHostToDevice;
		CHECK(cudaMemcpy3D(&up));
		/* Positions in an array are texels, in memory bytes. */
		cudaMemcpy3DParms down = {};
		memset(out, 0, sizeof out);
		down.srcArray = array;
		down.srcPos = make_cudaPos(1, 2, 1);
		down.dstPtr = make_cudaPitchedPtr(out, W * sizeof(int2), W, H);
		down.dstPos = make_cudaPos(2 * sizeof(int2), 0, 0);
		down.extent = make_cudaExtent(3, 2, 2);
		down.kind = cudaMemcpyDeviceToHost;
		CHECK(cudaMemcpy3DAsync(&down));
		CHECK(cudaDeviceSynchronize());
		for (int n = 0; n < 12; n++)
			EXPECT(out[n / 6][n / 3 % 2][2 + n % 3].y == in[1 + n / 6][2 + n / 3 % 2][1 + n % 3].y);
		EXPECT(out[0][0][1].x == 0);
		down.kind = cudaMemcpyHostToDevice;
		EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&down));
		down.kind = cudaMemcpyDeviceToHost;
		down.extent.depth = 3;
		EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy3D(&down));
		(void)cudaGetLastError();
		CHECK(cudaFreeArray(array));
	}
}

__global__ void fill(cudaSurfaceObject_t surface, int width)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
	if (x < width)
		surf2Dwrite(make_uchar4(x, y, x + y, 255), surface, x * (int)sizeof(uchar4), y);
}

__global__ void shift(cudaSurfaceObject_t from, cudaSurfaceObject_t to)
{
	uchar4 beyond = surf2Dread<uchar4>(from, ((int)threadIdx.x - 2) * 4, blockIdx.x, cudaBoundaryModeClamp);
	uchar4 none = surf2Dread<uchar4>(from, ((int)threadIdx.x - 2) * 4, blockIdx.x, cudaBoundaryModeZero);
	beyond.w = none.w;
	surf2DLayeredwrite(beyond, to, threadIdx.x * 4, blockIdx.x, 1);
}

static void surfaces()
{
	enum { W = 37, H = 6 };
	uchar4 out[H][W];
	auto channel = cudaCreateChannelDesc<uchar4>();
	cudaArray_t plain, layered;
	cudaSurfaceObject_t from, to;
	CHECK(cudaMallocArray(&plain, &channel, W, H, cudaArraySurfaceLoadStore));
	CHECK(cudaMalloc3DArray(&layered, &channel, make_cudaExtent(W, H, 2),
				cudaArrayLayered | cudaArraySurfaceLoadStore));
	cudaResourceDesc resource = {}, told;
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = plain;
	CHECK(cudaCreateSurfaceObject(&from, &resource));
	CHECK(cudaGetSurfaceObjectResourceDesc(&told, from));
	EXPECT(told.res.array.array == plain);
	resource.res.array.array = layered;
	CHECK(cudaCreateSurfaceObject(&to, &resource));
	fill<<<dim3(2, H), 32>>>(from, W);
	shift<<<H, W>>>(from, to);
	cudaMemcpy3DParms down = {};
	down.srcArray = layered;
	down.srcPos = make_cudaPos(0, 0, 1);
	down.dstPtr = make_cudaPitchedPtr(out, sizeof out[0], W, H);
	down.extent = make_cudaExtent(W, H, 1);
	down.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&down));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			int at = x < 2 ? 0 : x - 2;
			EXPECT(out[y][x].x == at && out[y][x].y == y && out[y][x].z == at + y &&
			       out[y][x].w == (x < 2 ? 0 : 255));
		}
	CHECK(cudaDestroySurfaceObject(from));
	CHECK(cudaDestroySurfaceObject(to));
	CHECK(cudaFreeArray(plain));
	CHECK(cudaFreeArray(layered));
}

int main()
{
	cudaArray_t array;
	cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
	skip_if_not_across("arrays", cudaMallocArray(&array, &channel, 4, 3));
	CHECK(cudaFreeArray(array));
	descriptions();
	from_row_to_row();
	boxes();
	layers_and_volumes();
	surfaces();
	return 0;
}
