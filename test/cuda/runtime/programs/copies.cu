/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills in every kind, direction and shape keep every byte, and no byte beside them. */
#include "program.cuh"

#include <cstring>
#include <vector>

static std::vector<unsigned char> pattern(size_t size, unsigned seed)
{
	std::vector<unsigned char> bytes(size);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(seed + i * 7 + i / 251);
	return bytes;
}

static void linear(size_t size, cudaMemcpyKind up, cudaMemcpyKind across, cudaMemcpyKind down, cudaStream_t stream)
{
	auto in = pattern(size, 3);
	std::vector<unsigned char> out(size + 1, 0xEE), middle(size);
	unsigned char *a, *b;
	CHECK(cudaMalloc(&a, size));
	CHECK(cudaMalloc(&b, size));
	CHECK(cudaMemcpy(a, in.data(), size, up));
	CHECK(cudaMemcpy(b, a, size, across));
	CHECK(cudaMemcpy(out.data(), b, size, down));
	EXPECT(!memcmp(out.data(), in.data(), size) && out[size] == 0xEE);

	in = pattern(size, 99);
	CHECK(cudaMemcpy(middle.data(), in.data(), size, cudaMemcpyHostToHost));
	CHECK(cudaMemcpyAsync(a, middle.data(), size, up, stream));
	CHECK(cudaMemcpyAsync(b, a, size, across, stream));
	CHECK(cudaMemcpyAsync(out.data(), b, size, down, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(!memcmp(out.data(), in.data(), size) && out[size] == 0xEE);

	CHECK(cudaMemset(a, 0x5A, size));
	CHECK(cudaMemsetAsync(b, 0xA5, size / 2, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(out.data(), a, size, down));
	for (size_t i = 0; i < size; i++)
		EXPECT(out[i] == 0x5A);
	CHECK(cudaMemcpy(out.data(), b, size, down));
	for (size_t i = 0; i < size; i++)
		EXPECT(out[i] == (i < size / 2 ? 0xA5 : in[i]));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

/* A window of a pitched area, up, filled in part, and down into a host area of another pitch. */
static void rectangle(size_t width, size_t height, bool async)
{
	const size_t host_pitch = width + 13;
	auto in = pattern(host_pitch * height, 17);
	std::vector<unsigned char> out(host_pitch * height, 0xEE);
	unsigned char *area;
	size_t pitch;
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocPitch(&area, &pitch, width, height));
	EXPECT(pitch >= width);
	if (async) {
		CHECK(cudaMemcpy2DAsync(
				area, pitch, in.data(), host_pitch, width, height, cudaMemcpyHostToDevice, stream));
		CHECK(cudaMemset2DAsync(area, pitch, 0x11, width / 2, height / 2, stream));
		CHECK(cudaMemcpy2DAsync(
				out.data(), host_pitch, area, pitch, width, height, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
	} else {
		CHECK(cudaMemcpy2D(area, pitch, in.data(), host_pitch, width, height, cudaMemcpyDefault));
		CHECK(cudaMemset2D(area, pitch, 0x11, width / 2, height / 2));
		CHECK(cudaMemcpy2D(out.data(), host_pitch, area, pitch, width, height, cudaMemcpyDefault));
	}
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < host_pitch; x++) {
			unsigned char expected = x >= width ? 0xEE : x < width / 2 && y < height / 2 ? 0x11
						 : in[y * host_pitch + x];
			EXPECT(out[y * host_pitch + x] == expected);
		}
	EXPECT_ERROR(cudaErrorInvalidPitchValue,
		     cudaMemcpy2D(area, pitch, in.data(), width - 1, width, height, cudaMemcpyHostToDevice));
	EXPECT_ERROR(cudaErrorInvalidPitchValue, cudaGetLastError());
	CHECK(cudaFree(area));
	CHECK(cudaStreamDestroy(stream));
}

static void box(void)
{
	const size_t w = 40, h = 9, d = 5;
	auto in = pattern(w * h * d, 5);
	std::vector<unsigned char> out(w * h * d, 0xEE);
	cudaPitchedPtr area;
	CHECK(cudaMalloc3D(&area, make_cudaExtent(w, h, d)));
	EXPECT(area.xsize == w && area.ysize == h && area.pitch >= w);
	CHECK(cudaMemset3D(area, 0x77, make_cudaExtent(w, h, d)));
	cudaMemcpy3DParms up = {};
	up.srcPtr = make_cudaPitchedPtr(in.data(), w, w, h);
	up.dstPtr = area;
	up.srcPos = make_cudaPos(3, 2, 1);
	up.dstPos = make_cudaPos(3, 2, 1);
	up.extent = make_cudaExtent(w - 6, h - 4, d - 2);
	up.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&up));
	cudaMemcpy3DParms down = {};
	down.srcPtr = area;
	down.dstPtr = make_cudaPitchedPtr(out.data(), w, w, h);
	down.extent = make_cudaExtent(w, h, d);
	down.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3DAsync(&down, 0));
	CHECK(cudaDeviceSynchronize());
	for (size_t z = 0; z < d; z++)
		for (size_t y = 0; y < h; y++)
			for (size_t x = 0; x < w; x++) {
				bool inside = x >= 3 && x < w - 3 && y >= 2 && y < h - 2 && z >= 1 && z < d - 1;
				size_t i = (z * h + y) * w + x;
				EXPECT(out[i] == (inside ? in[i] : 0x77));
			}
	CHECK(cudaFree(area.ptr));
}

static void pinned_and_peer(void)
{
	const size_t n = 100000;
	unsigned char *host, *a, *b;
	CHECK(cudaMallocHost(&host, n));
	CHECK(cudaMalloc(&a, n));
	CHECK(cudaMalloc(&b, n));
	auto in = pattern(n, 200);
	memcpy(host, in.data(), n);
	CHECK(cudaMemcpyAsync(a, host, n, cudaMemcpyDefault, 0));
	CHECK(cudaMemcpyPeer(b, 0, a, 0, n));
	CHECK(cudaMemcpyPeerAsync(a, 0, b, 0, n, 0));
	CHECK(cudaDeviceSynchronize());
	memset(host, 0, n);
	CHECK(cudaMemcpy(host, a, n, cudaMemcpyDefault));
	EXPECT(!memcmp(host, in.data(), n));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFreeHost(host));
}

int main()
{
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	for (size_t size : { (size_t)1, (size_t)3, (size_t)4096, (size_t)65537, (size_t)5000000 }) {
		linear(size, cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice, cudaMemcpyDeviceToHost, stream);
		linear(size, cudaMemcpyDefault, cudaMemcpyDefault, cudaMemcpyDefault, 0);
	}
	rectangle(300, 21, false);
	rectangle(301, 20, true);
	box();
	pinned_and_peer();
	CHECK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaGetLastError());
	return 0;
}
