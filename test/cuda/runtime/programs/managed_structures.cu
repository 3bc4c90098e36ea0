/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of pointers in managed memory, which host and device follow and change in turns. */
#include "program.cuh"

struct node {
	node *next;
	int value;
};

struct list {
	node *first;
	node *spare; /* nodes that the device may use */
	int length;
};

/* Doubles each value, and puts a new node behind each node with an odd value. */
__global__ void extend(list *numbers)
{
	for (node *at = numbers->first; at; at = at->next) {
		if (at->value % 2 && numbers->spare) {
			node *fresh = numbers->spare;
			numbers->spare = fresh->next;
			fresh->next = at->next;
			fresh->value = -at->value;
			at->next = fresh;
			numbers->length++;
			at->value *= 2;
			at = fresh;
		} else {
			at->value *= 2;
		}
	}
}

__global__ void add(int *values, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] += by;
}

static node *make_node(int value, node *next)
{
	node *made;
	CHECK(cudaMallocManaged(&made, sizeof *made));
	made->value = value;
	made->next = next;
	return made;
}

static int structures()
{
	list *numbers;
	CHECK(cudaMallocManaged(&numbers, sizeof *numbers));
	*numbers = list();
	for (int i = 100; i > 0; i--)
		numbers->first = make_node(i, numbers->first);
	for (int i = 0; i < 60; i++)
		numbers->spare = make_node(0, numbers->spare);
	numbers->length = 100;
	extend<<<1, 1>>>(numbers);
	CHECK(cudaDeviceSynchronize());
	EXPECT(numbers->length == 150);
	int length = 0;
	for (node *at = numbers->first; at; at = at->next, length++)
		if (at->value < 0)
			at->value = 1; /* odd: the next kernel extends the list here, as far as there are spare nodes */
	EXPECT(length == 150);
	extend<<<1, 1>>>(numbers);
	CHECK(cudaDeviceSynchronize());
	EXPECT(numbers->length == 160 && !numbers->spare);
	long sum = 0;
	length = 0;
	for (node *at = numbers->first; at; length++) {
		node *next = at->next;
		sum += at->value;
		CHECK(cudaFree(at));
		at = next;
	}
	/* 4 * (1 + … + 100); 50 times 2; 10 times -1 */
	EXPECT(length == 160 && sum == 4 * 5050 + 50 * 2 - 10);
	CHECK(cudaFree(numbers));
	return 0;
}

/* Each stream has memory of its own, which the host writes while the other stream is at work. */
static int streams()
{
	const int n = 100000, rounds = 5;
	cudaStream_t stream[2];
	int *values[2];
	for (int s = 0; s < 2; s++) {
		CHECK(cudaStreamCreate(&stream[s]));
		CHECK(cudaMallocManaged(&values[s], n * sizeof(int), cudaMemAttachHost));
		CHECK(cudaStreamAttachMemAsync(stream[s], values[s]));
		CHECK(cudaStreamSynchronize(stream[s]));
		for (int i = 0; i < n; i++)
			values[s][i] = i + s;
	}
	for (int round = 0; round < rounds; round++) {
		for (int s = 0; s < 2; s++)
			add<<<(n + 255) / 256, 256, 0, stream[s]>>>(values[s], n, 1);
		for (int s = 0; s < 2; s++) {
			CHECK(cudaStreamSynchronize(stream[s]));
			for (int i = 0; i < n; i += 1000)
				values[s][i] += 10;
			add<<<(n + 255) / 256, 256, 0, stream[s]>>>(values[s], n, 2);
		}
	}
	for (int s = 0; s < 2; s++) {
		CHECK(cudaStreamSynchronize(stream[s]));
		for (int i = 0; i < n; i++)
			EXPECT(values[s][i] == i + s + 3 * rounds + (i % 1000 ? 0 : 10 * rounds));
		CHECK(cudaFree(values[s]));
		CHECK(cudaStreamDestroy(stream[s]));
	}
	return 0;
}

/* A graph that is launched again and again, between changes by the host. */
static int graphs()
{
	const int n = 5000;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *values, *sum, *copy = new int[n];
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocManaged(&values, n * sizeof(int)));
	CHECK(cudaMallocManaged(&sum, n * sizeof(int)));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add<<<(n + 255) / 256, 256, 0, stream>>>(values, n, 5);
	CHECK(cudaMemcpyAsync(sum, values, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<(n + 255) / 256, 256, 0, stream>>>(sum, n, 7);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < n; i++)
			values[i] = round * 100 + i;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaMemcpy(copy, sum, n * sizeof(int), cudaMemcpyDefault));
		for (int i = 0; i < n; i++)
			EXPECT(values[i] == round * 100 + i + 5 && sum[i] == values[i] + 7 && copy[i] == sum[i]);
	}
	delete[] copy;
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(values));
	CHECK(cudaFree(sum));
	CHECK(cudaStreamDestroy(stream));
	return 0;
}

int main()
{
	int managed = 0;
	CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	if (!managed) {
		puts("skipped: the device has no managed memory");
		return 77;
	}
	return structures() || streams() || graphs();
}
