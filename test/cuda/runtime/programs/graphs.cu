/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs as programs build and capture them: nodes of every kind, conditions set by kernels, memory, updates. */
#include "program.cuh"

__device__ int table[4];

__global__ void add(int *values, int n, int what)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] += what;
}

__global__ void times_table(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] *= table[i % 4];
}

__global__ void count_down(int *left, int *log, cudaGraphConditionalHandle handle)
{
	log[0]++;
	log[log[0]] = *left;
	cudaGraphSetConditional(handle, --*left > 0);
}

static const int N = 1000;

static void launch(cudaGraphExec_t exec)
{
	cudaStream_t stream;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamDestroy(stream));
}

static void count(void *data)
{
	++*static_cast<int *>(data);
}

/* values = (5, or what is copied over it) + 3, times (1, 2, 3, 4)[i mod 4] */
static void built_node_by_node(void)
{
	static int host[N], back[N];
	int factors[] = { 1, 2, 3, 4 }, seen[4] = { 0 }, calls = 0, n = N, three = 3, *values;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t set, symbol, kernel, second, down, up, call;
	CHECK(cudaMalloc(&values, N * sizeof(int)));
	CHECK(cudaGraphCreate(&graph, 0));
	cudaMemsetParams zero = {};
	zero.dst = values, zero.elementSize = 4, zero.width = N, zero.height = 1, zero.value = 5;
	CHECK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &zero));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&symbol, graph, NULL, 0, table, factors, sizeof factors, 0,
					     cudaMemcpyHostToDevice));
	void *arguments[] = { &values, &n, &three };
	cudaKernelNodeParams params = {};
	params.func = (void *)add;
	params.gridDim = dim3(8), params.blockDim = dim3(128);
	params.kernelParams = arguments;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &params));
	params.func = (void *)times_table;
	cudaGraphNode_t both[] = { kernel, symbol };
	CHECK(cudaGraphAddKernelNode(&second, graph, both, 2, &params));
	CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &second, 1, back, values, sizeof back, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&up, graph, &second, 1, seen, table, sizeof(int), 2 * sizeof(int),
					       cudaMemcpyDeviceToHost));
	cudaHostNodeParams host_call = { count, &calls };
	CHECK(cudaGraphAddHostNode(&call, graph, &down, 1, &host_call));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	launch(exec);
	for (int i = 0; i < N; i++)
		EXPECT(back[i] == 8 * (1 + i % 4));
	EXPECT(seen[0] == 3 && calls == 1);
	/* The same kernel with what the getter returned, and another summand; a copy in place of another. */
	int ten = 10;
	CHECK(cudaGraphKernelNodeGetParams(kernel, &params));
	EXPECT(*(int *)params.kernelParams[2] == 3 && params.blockDim.x == 128);
	params.kernelParams = arguments;
	arguments[2] = &ten;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, down, host, values, sizeof host, cudaMemcpyDeviceToHost));
	launch(exec);
	for (int i = 0; i < N; i++)
		EXPECT(host[i] == 15 * (1 + i % 4) && back[i] == 8 * (1 + i % 4));
	CHECK(cudaGraphNodeSetEnabled(exec, second, 0));
	launch(exec);
	EXPECT(host[3] == 15 && calls == 3);
	cudaGraphNodeType type;
	CHECK(cudaGraphNodeGetType(down, &type));
	EXPECT(type == cudaGraphNodeTypeMemcpy);
	size_t edges;
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
	EXPECT(edges == 6);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(down, &zero));
	EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(values));
}

/* Two streams, forked and joined; what is captured does not run until the graph is launched. */
static cudaGraph_t captured(cudaStream_t first, cudaStream_t second, int *a, int *b, int *host, int what)
{
	cudaGraph_t graph;
	cudaEvent_t fork, join;
	cudaStreamCaptureStatus status;
	CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemsetAsync(a, 0, N * sizeof(int), first));
	CHECK(cudaEventRecord(fork, first));
	CHECK(cudaStreamWaitEvent(second, fork, 0));
	CHECK(cudaMemsetAsync(b, 0, N * sizeof(int), second));
	for (int i = 0; i < 5; i++) {
		add<<<8, 128, 0, first>>>(a, N, what);
		add<<<8, 128, 0, second>>>(b, N, 2 * what);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(host + N, b, N * sizeof(int), cudaMemcpyDeviceToHost, second));
	CHECK(cudaEventRecord(join, second));
	CHECK(cudaStreamWaitEvent(first, join, 0));
	CHECK(cudaMemcpyAsync(host, a, N * sizeof(int), cudaMemcpyDeviceToHost, first));
	CHECK(cudaStreamIsCapturing(first, &status));
	EXPECT(status == cudaStreamCaptureStatusActive);
	CHECK(cudaStreamEndCapture(first, &graph));
	CHECK(cudaEventDestroy(fork));
	CHECK(cudaEventDestroy(join));
	return graph;
}

static void captured_from_streams(void)
{
	static int host[2 * N];
	int *a, *b;
	cudaStream_t first, second;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	CHECK(cudaMalloc(&a, N * sizeof(int)));
	CHECK(cudaMalloc(&b, N * sizeof(int)));
	CHECK(cudaStreamCreate(&first));
	CHECK(cudaStreamCreate(&second));
	cudaGraph_t graph = captured(first, second, a, b, host, 7), again;
	CHECK(cudaStreamSynchronize(first));
	EXPECT(host[0] == 0 && host[N] == 0);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 3; round++)
		CHECK(cudaGraphLaunch(exec, second));
	CHECK(cudaStreamSynchronize(second));
	for (int i = 0; i < N; i++)
		EXPECT(host[i] == 35 && host[N + i] == 70);
	again = captured(first, second, a, b, host, 100);
	CHECK(cudaGraphExecUpdate(exec, again, &info));
	EXPECT(info.result == cudaGraphExecUpdateSuccess);
	CHECK(cudaGraphLaunch(exec, first));
	CHECK(cudaStreamSynchronize(first));
	for (int i = 0; i < N; i++)
		EXPECT(host[i] == 500 && host[N + i] == 1000);
	CHECK(cudaGraphDestroy(again));
	/* What is forbidden meanwhile. */
	CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
	int *more;
	EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, cudaMalloc(&more, 4));
	EXPECT_ERROR(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &again));
	cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

/* The body runs as often as the kernel in it wants. */
static void loops_that_kernels_end(void)
{
	int host[11] = { 0 }, six = 6, *left, *log;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t loop, kernel;
	cudaGraphConditionalHandle handle;
	CHECK(cudaMalloc(&left, sizeof(int)));
	CHECK(cudaMalloc(&log, sizeof host));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	cudaGraphNodeParams params = {};
	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = cudaGraphCondTypeWhile;
	params.conditional.size = 1;
	CHECK(cudaGraphAddNode(&loop, graph, NULL, NULL, 0, &params));
	cudaGraph_t body = params.conditional.phGraph_out[0];
	params = {};
	void *arguments[] = { &left, &log, &handle };
	params.type = cudaGraphNodeTypeKernel;
	params.kernel.func = (void *)count_down;
	params.kernel.gridDim = dim3(1), params.kernel.blockDim = dim3(1);
	params.kernel.kernelParams = arguments;
	CHECK(cudaGraphAddNode(&kernel, body, NULL, NULL, 0, &params));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 1; round <= 2; round++) {
		CHECK(cudaMemset(log, 0, sizeof host));
		CHECK(cudaMemcpy(left, &six, sizeof six, cudaMemcpyHostToDevice));
		launch(exec);
		CHECK(cudaMemcpy(host, log, sizeof host, cudaMemcpyDeviceToHost));
		EXPECT(host[0] == 6);
		for (int i = 1; i <= 6; i++)
			EXPECT(host[i] == 7 - i);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(left));
	CHECK(cudaFree(log));
}

static void memory_of_graphs(void)
{
	static int back[N];
	int n = N, nine = 9, *values;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t alloc, set, kernel, down, release;
	cudaMemAllocNodeParams params = {};
	unsigned long long used, reserved;
	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.bytesize = N * sizeof(int);
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	values = static_cast<int *>(params.dptr);
	cudaMemsetParams zero = {};
	zero.dst = values, zero.elementSize = 4, zero.width = N, zero.height = 1, zero.value = 1;
	CHECK(cudaGraphAddMemsetNode(&set, graph, &alloc, 1, &zero));
	void *arguments[] = { &values, &n, &nine };
	cudaKernelNodeParams add_nine = {};
	add_nine.func = (void *)add, add_nine.gridDim = dim3(8), add_nine.blockDim = dim3(128);
	add_nine.kernelParams = arguments;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &add_nine));
	CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &kernel, 1, back, values, sizeof back, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddMemFreeNode(&release, graph, &down, 1, values));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	launch(exec);
	EXPECT(back[0] == 10 && back[N - 1] == 10);
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
	EXPECT(used == 0 && reserved >= N * sizeof(int));
	CHECK(cudaDeviceGraphMemTrim(0));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
	EXPECT(reserved == 0);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* Beside an array, extents are in texels: what the getter tells is what the setter takes. */
static void copies_of_arrays_are_told_in_texels(void)
{
	enum { W = 6, H = 4 };
	float4 in[H][W], out[H][W] = {};
	for (int n = 0; n < W * H; n++)
		in[n / W][n % W] = make_float4(n, n + 0.25f, n + 0.5f, n + 0.75f);
	cudaChannelFormatDesc channel = cudaCreateChannelDesc<float4>();
	cudaArray_t array;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t up, down;
	CHECK(cudaMallocArray(&array, &channel, W, H));
	CHECK(cudaGraphCreate(&graph, 0));
	cudaMemcpy3DParms copy = {}, told;
	copy.srcPtr = make_cudaPitchedPtr(in, sizeof in[0], W, H), copy.dstArray = array;
	copy.extent = make_cudaExtent(W, H, 1), copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaGraphAddMemcpyNode(&up, graph, NULL, 0, &copy));
	cudaMemcpy3DParms back = {};
	back.srcArray = array, back.srcPos = make_cudaPos(2, 1, 0);
	back.dstPtr = make_cudaPitchedPtr(out, sizeof out[0], W, H);
	back.extent = make_cudaExtent(3, 2, 1), back.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaGraphAddMemcpyNode(&down, graph, &up, 1, &back));
	CHECK(cudaGraphMemcpyNodeGetParams(down, &told));
	EXPECT(told.srcArray == array && told.srcPos.x == 2 && told.srcPos.y == 1 && told.dstPtr.ptr == out);
	EXPECT(told.extent.width == 3 && told.extent.height == 2 && told.extent.depth == 1);
	CHECK(cudaGraphMemcpyNodeSetParams(down, &told));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	launch(exec);
	for (int n = 0; n < 6; n++)
		EXPECT(out[n / 3][n % 3].w == in[1 + n / 3][2 + n % 3].w);
	EXPECT(out[0][3].w == 0 && out[2][0].w == 0);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeArray(array));
}

/* The width is told for what a texture of linear memory may consist of, and for nothing else. */
static void widths_of_linear_textures(void)
{
	size_t width = 0;
	cudaChannelFormatDesc good = cudaCreateChannelDesc<float4>(), bad = cudaCreateChannelDesc(8, 16, 0, 0,
			cudaChannelFormatKindUnsigned);
	CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&width, &good, 0));
	EXPECT(width >= 1 << 20);
	EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, cudaDeviceGetTexture1DLinearMaxWidth(&width, &bad, 0));
	bad = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
	EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, cudaDeviceGetTexture1DLinearMaxWidth(&width, &bad, 0));
	(void)cudaGetLastError();
}

int main(void)
{
	cudaGraph_t graph;
	skip_if_not_across("graphs", cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphDestroy(graph));
	built_node_by_node();
	captured_from_streams();
	loops_that_kernels_end();
	memory_of_graphs();
	copies_of_arrays_are_told_in_texels();
	widths_of_linear_textures();
	return 0;
}
