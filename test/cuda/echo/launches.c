/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of launches: the parameters are values of which only the module knows the sizes (driver.c: 8 bytes each). */
#include "test/cuda/echo/runner.h"

#define PARAMETERS 2
#define ATTRIBUTES 4

struct launch {
	struct pair function, stream;
	CUlaunchConfig config; /* without a stream */
	CUlaunchAttribute attributes[ATTRIBUTES];
	uint64_t values[PARAMETERS];
	size_t size;
	void *parameters[PARAMETERS], *block[5];
	bool by_block;
};

/* The client refuses clusters that do not divide the grid, or are larger than every device permits. */
static void draw_clusters(struct run *run, struct launch *launch)
{
	unsigned size[3], *grid = &launch->config.gridDimX;
	for (int i = 0; i < 3; i++) {
		size[i] = 1 + (unsigned)draw_below(run, 2);
		grid[i] *= size[i];
	}
	for (int i = 0; i < ATTRIBUTES; i++) {
		if (launch->attributes[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		launch->attributes[i].value.clusterDim.x = size[0];
		launch->attributes[i].value.clusterDim.y = size[1];
		launch->attributes[i].value.clusterDim.z = size[2];
	}
}

static void draw_launch(struct run *run, struct launch *launch)
{
	static const CUlaunchAttributeID known[] = {
		CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
		CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
	};
	uint64_t wrong = run->wrong ? 1 + draw_below(run, 2) : 0;
	launch->function = draw_object(run, RC_KIND_FUNCTION, false, wrong == 1);
	launch->stream = wrong ? draw_object(run, RC_KIND_STREAM, false, wrong == 2) : stream_with(run, launch->function);
	unsigned *shape = &launch->config.gridDimX;
	for (int i = 0; i < 3; i++) {
		shape[i] = 1 + (unsigned)draw_below(run, 20);
		shape[3 + i] = 1 + (unsigned)draw_below(run, 10);
	}
	launch->config.sharedMemBytes = (unsigned)draw_below(run, 512);
	launch->config.attrs = launch->attributes;
	launch->config.numAttrs = 1 + (unsigned)draw_below(run, ATTRIBUTES);
	draw_bytes(run, launch->attributes, sizeof launch->attributes);
	for (int i = 0; i < ATTRIBUTES; i++)
		launch->attributes[i].id = known[draw_below(run, sizeof known / sizeof known[0])];
	draw_clusters(run, launch);
	for (int i = 0; i < PARAMETERS; i++) {
		launch->values[i] = draw(run);
		launch->parameters[i] = &launch->values[i];
	}
	launch->size = sizeof launch->values;
	launch->block[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	launch->block[1] = launch->values;
	launch->block[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	launch->block[3] = &launch->size;
	launch->block[4] = CU_LAUNCH_PARAM_END;
	launch->by_block = draw_below(run, 2);
}

/* A cooperative launch must fit on the device, which has room for 32,639 blocks (echo_fill). With clusters the grid can have more. */
static void draw_cooperative(struct run *run, struct launch *launch)
{
	draw_launch(run, launch);
	launch->config.gridDimZ = 1;
}

#define SHAPE(c) (c).gridDimX, (c).gridDimY, (c).gridDimZ, (c).blockDimX, (c).blockDimY, (c).blockDimZ, (c).sharedMemBytes
#define FUNCTION(side) ((CUfunction)(uintptr_t)launch.function.side)
#define STREAM(side) ((CUstream)(uintptr_t)launch.stream.side)
#define GIVEN launch.by_block ? NULL : launch.parameters, launch.by_block ? launch.block : NULL

#define LAUNCH_KERNEL(name) \
	void case_##name(struct run *run); \
	void case_##name(struct run *run) \
	{ \
		struct launch launch = { .by_block = false }; \
		draw_launch(run, &launch); \
		case_begins(run); \
		case_direct(run, run->direct.name(FUNCTION(direct), SHAPE(launch.config), STREAM(direct), GIVEN)); \
		case_remote(run, name(FUNCTION(remote), SHAPE(launch.config), STREAM(remote), GIVEN)); \
	}
#define LAUNCH_COOPERATIVE(name) \
	void case_##name(struct run *run); \
	void case_##name(struct run *run) \
	{ \
		struct launch launch = { .by_block = false }; \
		draw_cooperative(run, &launch); \
		case_begins(run); \
		case_direct(run, run->direct.name(FUNCTION(direct), SHAPE(launch.config), STREAM(direct), launch.parameters)); \
		case_remote(run, name(FUNCTION(remote), SHAPE(launch.config), STREAM(remote), launch.parameters)); \
	}
#define LAUNCH_WITH_ATTRIBUTES(name) \
	void case_##name(struct run *run); \
	void case_##name(struct run *run) \
	{ \
		struct launch launch = { .by_block = false }; \
		draw_launch(run, &launch); \
		CUlaunchConfig config = launch.config; \
		case_begins(run); \
		config.hStream = STREAM(direct); \
		case_direct(run, run->direct.name(&config, FUNCTION(direct), GIVEN)); \
		config.hStream = STREAM(remote); \
		case_remote(run, name(&config, FUNCTION(remote), GIVEN)); \
	}

LAUNCH_KERNEL(cuLaunchKernel)
LAUNCH_KERNEL(cuLaunchKernel_ptsz)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
LAUNCH_WITH_ATTRIBUTES(cuLaunchKernelEx)
LAUNCH_WITH_ATTRIBUTES(cuLaunchKernelEx_ptsz)
