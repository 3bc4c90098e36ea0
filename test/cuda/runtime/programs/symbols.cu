/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of the device: found, read, written, and not mixed up with another object's of the same name. */
#include "program.cuh"
#include "symbols.cuh"

#include <cstring>

__device__ int counter = 5;
__device__ float table[100];
__constant__ int weights[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static __device__ int same_name = 1;

template <typename T> __device__ T typed[4];

__global__ void use(int *out)
{
	int sum = 0;
	for (int w : weights)
		sum += w;
	out[0] = atomicAdd(&counter, sum);
	out[1] = same_name;
	table[threadIdx.x] = table[threadIdx.x] * 2;
	out[2] = typed<int>[1] + (int)typed<double>[2];
}

int main()
{
	int host[3], *out, value, eight[8] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	float floats[100];
	void *address;
	size_t size;
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&out, sizeof host));

	CHECK(cudaMemcpyFromSymbol(eight, weights, sizeof eight));
	for (int i = 0; i < 8; i++)
		EXPECT(eight[i] == i + 1);
	for (int i = 0; i < 100; i++)
		floats[i] = i;
	CHECK(cudaMemcpyToSymbol(table, floats, sizeof floats));
	CHECK(cudaMemcpyToSymbolAsync(
			weights, eight, 4 * sizeof(int), 4 * sizeof(int), cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	value = 1000;
	CHECK(cudaMemcpyToSymbol(typed<int>, &value, sizeof value, sizeof value));
	double number = 2000;
	CHECK(cudaMemcpyToSymbol(typed<double>, &number, sizeof number, 2 * sizeof number));

	use<<<1, 1>>>(out);
	CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
	EXPECT(host[0] == 5 && host[1] == 1 && host[2] == 3000);
	CHECK(cudaMemcpyFromSymbolAsync(&value, counter, sizeof value, 0, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(value == 5 + 2 * (1 + 2 + 3 + 4));

	use<<<1, 100>>>(out);
	CHECK(cudaMemcpyFromSymbol(floats, table, sizeof floats));
	EXPECT(floats[0] == 0 && floats[1] == 2 && floats[99] == 198);

	CHECK(cudaGetSymbolSize(&size, table));
	EXPECT(size == sizeof floats);
	CHECK(cudaGetSymbolAddress(&address, table));
	CHECK(cudaMemset(address, 0, size));
	CHECK(cudaMemcpyFromSymbol(floats, table, sizeof(float), 99 * sizeof(float)));
	EXPECT(floats[0] == 0);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyFromSymbol(floats, table, 8, sizeof floats - 4));
	EXPECT_ERROR(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size, host));
	EXPECT_ERROR(cudaErrorInvalidSymbol, cudaGetLastError());

	EXPECT(same_name_of_another_object() == 2);
	CHECK(cudaMemcpyFromSymbol(&value, same_name, sizeof value));
	EXPECT(value == 1);
	CHECK(cudaFree(out));
	return 0;
}
