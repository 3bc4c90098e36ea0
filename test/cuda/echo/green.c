/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of green contexts. Each side has structs of multiprocessors of its own; a driver must get them as it has made them. */
#include "test/cuda/echo/runner.h"

#define KEPT 32
#define PARTS 8

struct resources {
	CUdevResource direct, remote;
};
/* One list for each device. */
static struct resources resources[2][KEPT];
static unsigned n_resources[2];
static struct pair greens[KEPT], descriptors[2][KEPT];
static unsigned n_greens, n_descriptors[2], green_device[KEPT];

/* What is visible of a resource must be equal. */
static void resource_made(struct run *run, int device, const struct resources *made)
{
	compare_bytes(run, "type", &made->direct.type, &made->remote.type, sizeof made->direct.type);
	compare_bytes(run, "sm", &made->direct.sm, &made->remote.sm, sizeof made->direct.sm);
	if (run->ok)
		resources[device][n_resources[device] < KEPT ? n_resources[device]++ : draw_below(run, KEPT)] = *made;
}

void case_cuDeviceGetDevResource(struct run *run);
void case_cuDeviceGetDevResource(struct run *run)
{
	struct resources made = { 0 };
	struct device_pair device = draw_device(run, run->wrong);
	CUdevResourceType type = run->wild ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
	case_begins(run);
	case_direct(run, run->direct.cuDeviceGetDevResource(device.direct, &made.direct, type));
	case_remote(run, cuDeviceGetDevResource(device.remote, &made.remote, type));
	resource_made(run, device.remote & 1, &made);
}

/* Makes what the other cases need, by the case for it, which must succeed. */
static void need(struct run *run, const unsigned *have, const char *name)
{
	while (!*have)
		run_other(run, name);
}

static const struct resources *any_resource(struct run *run, int device)
{
	need(run, &n_resources[device], "cuDeviceGetDevResource");
	return &resources[device][draw_below(run, n_resources[device])];
}

void case_cuDevSmResourceSplitByCount(struct run *run);
void case_cuDevSmResourceSplitByCount(struct run *run)
{
	struct resources parts[PARTS], rest = { 0 }, input;
	CUdevResource direct[PARTS], remote[PARTS];
	int device = (int)draw_below(run, 2);
	bool give = draw_below(run, 4), left = draw_below(run, 2);
	unsigned count = 1 + (unsigned)draw_below(run, PARTS), counts[2] = { count, count };
	unsigned flags = (unsigned)draw_below(run, 4), least = (unsigned)draw(run);
	input = *any_resource(run, device);
	if (run->wrong)
		input.direct.type = input.remote.type = CU_DEV_RESOURCE_TYPE_INVALID;
	case_begins(run);
	case_direct(run, run->direct.cuDevSmResourceSplitByCount(give ? direct : NULL, &counts[0], &input.direct,
								 left ? &rest.direct : NULL, flags, least));
	case_remote(run, cuDevSmResourceSplitByCount(give ? remote : NULL, &counts[1], &input.remote,
						     left ? &rest.remote : NULL, flags, least));
	compare_bytes(run, "count", &counts[0], &counts[1], sizeof count);
	for (unsigned i = 0; i < count && give && run->ok; i++) {
		parts[i] = (struct resources){ direct[i], remote[i] };
		resource_made(run, device, &parts[i]);
	}
	if (left && run->ok)
		resource_made(run, device, &rest);
}

void case_cuDevResourceGenerateDesc(struct run *run);
void case_cuDevResourceGenerateDesc(struct run *run)
{
	CUdevResource direct[PARTS], remote[PARTS];
	CUdevResourceDesc made_d, made_r;
	int device = (int)draw_below(run, 2);
	unsigned count = 1 + (unsigned)draw_below(run, PARTS);
	for (unsigned i = 0; i < count; i++) {
		const struct resources *one = any_resource(run, device);
		direct[i] = one->direct;
		remote[i] = one->remote;
	}
	case_begins(run);
	case_direct(run, run->direct.cuDevResourceGenerateDesc(run->wrong ? NULL : &made_d, direct, count));
	case_remote(run, cuDevResourceGenerateDesc(run->wrong ? NULL : &made_r, remote, count));
	if (!run->ok)
		return;
	struct pair made = { (uint64_t)(uintptr_t)made_d, (uint64_t)(uintptr_t)made_r };
	object_made(run, RC_KIND_DESCRIPTOR, made.direct, made.remote, false, 0);
	descriptors[device][n_descriptors[device] < KEPT ? n_descriptors[device]++ : draw_below(run, KEPT)] = made;
}

void case_cuGreenCtxCreate(struct run *run);
void case_cuGreenCtxCreate(struct run *run)
{
	CUgreenCtx made_d, made_r;
	if (n_greens == KEPT)
		return run_other(run, "cuGreenCtxDestroy");
	struct device_pair device = draw_device(run, false);
	need(run, &n_descriptors[device.remote], "cuDevResourceGenerateDesc");
	struct pair descriptor = descriptors[device.remote][draw_below(run, n_descriptors[device.remote])];
	if (run->wrong)
		device = draw_device(run, true);
	case_begins(run);
	case_direct(run, run->direct.cuGreenCtxCreate(&made_d, (CUdevResourceDesc)(uintptr_t)descriptor.direct, device.direct,
						      CU_GREEN_CTX_DEFAULT_STREAM));
	case_remote(run, cuGreenCtxCreate(&made_r, (CUdevResourceDesc)(uintptr_t)descriptor.remote, device.remote,
					  CU_GREEN_CTX_DEFAULT_STREAM));
	if (!run->ok)
		return;
	struct pair made = { (uint64_t)(uintptr_t)made_d, (uint64_t)(uintptr_t)made_r };
	object_same(run, made);
	green_device[n_greens] = (unsigned)device.remote;
	greens[n_greens++] = made;
}

/* A green context; wrong: a value that is none. */
static struct pair any_green(struct run *run, unsigned *index)
{
	need(run, &n_greens, "cuGreenCtxCreate");
	*index = (unsigned)draw_below(run, n_greens);
	if (run->wrong)
		return (struct pair){ 1 + draw_below(run, 1000), 1 };
	return greens[*index];
}

#define GREEN(side) ((CUgreenCtx)(uintptr_t)green.side)

void case_cuGreenCtxDestroy(struct run *run);
void case_cuGreenCtxDestroy(struct run *run)
{
	unsigned index;
	struct pair green = any_green(run, &index);
	case_begins(run);
	case_direct(run, run->direct.cuGreenCtxDestroy(GREEN(direct)));
	case_remote(run, cuGreenCtxDestroy(GREEN(remote)));
	/* If the worker's driver refuses, the handle has ended there nevertheless. */
	if (run->wrong)
		return;
	object_gone(run, green);
	greens[index] = greens[--n_greens];
	green_device[index] = green_device[n_greens];
}

void case_cuGreenCtxGetDevResource(struct run *run);
void case_cuGreenCtxGetDevResource(struct run *run)
{
	unsigned index;
	struct resources made = { 0 };
	struct pair green = any_green(run, &index);
	case_begins(run);
	case_direct(run, run->direct.cuGreenCtxGetDevResource(GREEN(direct), &made.direct, CU_DEV_RESOURCE_TYPE_SM));
	case_remote(run, cuGreenCtxGetDevResource(GREEN(remote), &made.remote, CU_DEV_RESOURCE_TYPE_SM));
	if (run->ok)
		resource_made(run, (int)green_device[index], &made);
}

void case_cuGreenCtxStreamCreate(struct run *run);
void case_cuGreenCtxStreamCreate(struct run *run)
{
	unsigned index;
	CUstream made_d, made_r;
	struct pair green = any_green(run, &index);
	int priority = (int)draw(run);
	case_begins(run);
	case_direct(run, run->direct.cuGreenCtxStreamCreate(&made_d, GREEN(direct), CU_STREAM_NON_BLOCKING, priority));
	case_remote(run, cuGreenCtxStreamCreate(&made_r, GREEN(remote), CU_STREAM_NON_BLOCKING, priority));
	if (run->ok)
		object_same(run, (struct pair){ (uint64_t)(uintptr_t)made_d, (uint64_t)(uintptr_t)made_r });
}

#define EVENT_CASE(name, wait) \
	void case_##name(struct run *run); \
	void case_##name(struct run *run) \
	{ \
		unsigned index; \
		struct pair green = any_green(run, &index), event = draw_event(run, (int)green_device[index], wait); \
		case_begins(run); \
		case_direct(run, run->direct.name(GREEN(direct), (CUevent)(uintptr_t)event.direct)); \
		case_remote(run, name(GREEN(remote), (CUevent)(uintptr_t)event.remote)); \
	}
EVENT_CASE(cuGreenCtxRecordEvent, false)
EVENT_CASE(cuGreenCtxWaitEvent, true)
