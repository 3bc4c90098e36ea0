/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which work is known to come before which, as vector clocks, and calls that make work wait for other work. Two accesses to the
 * same bytes, one of which writes, are always ordered, so the contents are those of the calls one after another.
 */
#include "test/cuda/mixed/mixed.h"

static void join(struct clock *into, const struct clock *other)
{
	for (int i = 0; i < ACTORS; i++)
		if (other->of[i] > into->of[i])
			into->of[i] = other->of[i];
}

void order_join(struct world *world, int actor, const struct clock *clock)
{
	join(&world->clocks[actor], clock);
}

void order_enter(struct world *world, int actor)
{
	struct clock *clock = &world->clocks[actor];
	join(clock, &world->clocks[HOST]);
	if (actor == HOST)
		return;
	const struct stream *stream = &world->streams[actor];
	for (int i = 1; i < ACTORS; i++) {
		const struct stream *other = &world->streams[i];
		if (i == actor || !other->handle == !other->legacy || other->device != stream->device)
			continue;
		if ((stream->legacy && other->blocking) || (stream->blocking && other->legacy))
			join(clock, &world->clocks[i]);
	}
}

void order_step(struct world *world, int actor)
{
	order_enter(world, actor);
	world->clocks[actor].of[actor] = ++world->now[actor];
}

void order_record(struct world *world, int event, int actor)
{
	struct event *e = &world->events[event];
	OK(cuCtxSetCurrent(mixed_contexts[world->streams[actor].device]));
	if (e->device != world->streams[actor].device) {
		if (e->handle)
			OK(cuEventDestroy(e->handle));
		OK(cuEventCreate(&e->handle, mixed_draw(world, 2) ? CU_EVENT_DISABLE_TIMING : 0));
		e->device = world->streams[actor].device;
	}
	OK(cuEventRecord(e->handle, world->streams[actor].handle));
	order_step(world, actor);
	e->clock = world->clocks[actor];
	e->recorded = true;
	mixed_note(world, "event %d is recorded in stream %d", event, actor);
}

void order_wait(struct world *world, int event, int actor)
{
	OK(cuCtxSetCurrent(mixed_contexts[world->streams[actor].device]));
	OK(cuStreamWaitEvent(world->streams[actor].handle, world->events[event].handle, 0));
	order_enter(world, actor);
	join(&world->clocks[actor], &world->events[event].clock);
	mixed_note(world, "stream %d waits for event %d", actor, event);
}

static void synchronize_stream(struct world *world, int actor)
{
	struct clock before;
	OK(cuCtxSetCurrent(mixed_contexts[world->streams[actor].device]));
	mixed_note(world, "the host waits for stream %d", actor);
	OK(cuStreamSynchronize(world->streams[actor].handle));
	order_enter(world, actor);
	before = world->clocks[actor];
	order_join(world, HOST, &before);
}

void order_device(struct world *world, int device)
{
	OK(cuCtxSetCurrent(mixed_contexts[device]));
	mixed_note(world, "the host waits for device %d", device);
	OK(cuCtxSynchronize());
	for (int i = 1; i < ACTORS; i++)
		if (world->streams[i].device == device)
			order_join(world, HOST, &world->clocks[i]);
}

void order_all(struct world *world)
{
	for (int i = 0; i < world->devices; i++)
		order_device(world, i);
}

/* The host waits for what the other actor has been given. */
static void host_waits(struct world *world, int other)
{
	int event = (int)mixed_draw(world, EVENTS);
	switch (mixed_draw(world, 4)) {
	case 0:
		order_device(world, world->streams[other].device);
		break;
	case 1:
		order_record(world, event, other);
		mixed_note(world, "the host waits for event %d", event);
		OK(cuEventSynchronize(world->events[event].handle));
		order_join(world, HOST, &world->events[event].clock);
		break;
	case 2: {
		CUresult result;
		order_record(world, event, other);
		mixed_note(world, "the host asks for event %d", event);
		do
			result = cuEventQuery(world->events[event].handle);
		while (result == CUDA_ERROR_NOT_READY);
		OK(result);
		order_join(world, HOST, &world->events[event].clock);
		break;
	}
	default:
		synchronize_stream(world, other);
	}
}

static void stream_waits(struct world *world, int actor, int other, unsigned time)
{
	int device = world->streams[actor].device;
	/* An event that was recorded before, and perhaps waited for by others. */
	for (int i = 0; i < EVENTS; i++)
		if (world->events[i].recorded && world->events[i].clock.of[other] >= time) {
			order_wait(world, i, actor);
			return;
		}
	if (mixed_draw(world, 8) == 0 && !world->capturing) {
		host_waits(world, other);
	} else if (device == world->streams[other].device && mixed_draw(world, 4) == 0 && !world->capturing) {
		OK(cuCtxSetCurrent(mixed_contexts[device]));
		uint32_t value = ++world->flagged[other];
		CUdeviceptr flag = world->flags[device] + 4 * (unsigned)other;
		OK(cuStreamWriteValue32(world->streams[other].handle, flag, value, 0));
		order_step(world, other);
		OK(cuStreamWaitValue32(world->streams[actor].handle, flag, value, CU_STREAM_WAIT_VALUE_GEQ));
		join(&world->clocks[actor], &world->clocks[other]);
		mixed_note(world, "stream %d waits for a value of stream %d", actor, other);
	} else {
		/* In a capture no event may be destroyed. */
		int event = world->capturing ? world->streams[other].device : (int)mixed_draw(world, EVENTS);
		order_record(world, event, other);
		order_wait(world, event, actor);
	}
}

void order_before(struct world *world, int actor, const struct area *area, bool write, bool only_functions)
{
	size_t end = area_end(area);
	order_enter(world, actor);
	for (int i = world->accesses - 1; i >= 0; i--) {
		const struct access *access = &world->history[i];
		if (access->block != area->block || access->begin >= end || area->offset >= access->end ||
		    !(write || access->write) || (only_functions && !access->function) ||
		    world->clocks[actor].of[access->actor] >= access->time)
			continue;
		if (actor == HOST)
			host_waits(world, access->actor);
		else
			stream_waits(world, actor, access->actor, access->time);
		order_enter(world, actor);
		CHECK(world->clocks[actor].of[access->actor] >= access->time);
	}
}

static void add(struct world *world, int actor, const struct area *area, bool write, bool function)
{
	int kept = 0;
	if (area->block < 0)
		return;
	if (world->accesses == MAX_HISTORY) { /* all later work comes after what the host knows to be complete */
		for (int i = 0; i < world->accesses; i++) {
			const struct access *access = &world->history[i];
			if (world->clocks[HOST].of[access->actor] < access->time)
				world->history[kept++] = *access;
		}
		world->accesses = kept;
		CHECK(kept < MAX_HISTORY);
	}
	world->history[world->accesses++] =
		(struct access){ area->block, actor, area->offset, area_end(area), write, function, world->now[actor] };
}

void order_forget(struct world *world, int block)
{
	int kept = 0;
	for (int i = 0; i < world->accesses; i++)
		if (world->history[i].block != block)
			world->history[kept++] = world->history[i];
	world->accesses = kept;
}

void order_host(struct world *world, const struct area *area, bool write)
{
	order_step(world, HOST);
	add(world, HOST, area, write, false);
}

/* Pageable memory is read during the call, so the host reads it; but not in a graph. */
static bool read_by_host(const struct world *world, const struct operation *operation)
{
	return operation->what == COPY && world->blocks[operation->from.block].kind == PAGEABLE && !world->capturing;
}

/* A copy in a default stream is ordered with those of both devices. */
static void with_default_streams(struct world *world, const struct operation *operation, bool after)
{
	int actor = operation->actor, both[] = { operation->from.block, operation->to.block };
	if (operation->what != COPY || !world->streams[actor].legacy)
		return;
	for (int k = 0; k < 2; k++)
		for (int i = 1; i < ACTORS; i++) {
			const struct stream *stream = &world->streams[i];
			const struct block *block = &world->blocks[both[k]];
			if (!stream->legacy || mixed_on_host(block) || stream->device != block->device || i == actor)
				continue;
			order_enter(world, i);
			if (after)
				join(&world->clocks[i], &world->clocks[actor]);
			else
				join(&world->clocks[actor], &world->clocks[i]);
		}
}

void order_operation(struct world *world, const struct operation *operation)
{
	with_default_streams(world, operation, false);
	if (operation->from.block >= 0)
		order_before(world, read_by_host(world, operation) ? HOST : operation->actor, &operation->from, false, false);
	if (operation->to.block >= 0)
		order_before(world, operation->actor, &operation->to, true, false);
	/* The waits may have been calls in these streams. */
	with_default_streams(world, operation, false);
}

void order_issued(struct world *world, const struct operation *operation)
{
	int actor = operation->actor;
	bool function = operation->what == FUNCTION;
	order_step(world, actor);
	if (operation->from.block >= 0 && read_by_host(world, operation))
		order_host(world, &operation->from, false);
	else
		add(world, actor, &operation->from, false, function);
	add(world, actor, &operation->to, true, function);
	with_default_streams(world, operation, true);
	if (!world->capturing && operation_waits(world, operation)) {
		struct clock done = world->clocks[actor];
		join(&world->clocks[HOST], &done);
	}
}

void order_launched(struct world *world, int actor, const struct operation *operation)
{
	order_step(world, actor);
	add(world, actor, &operation->from, false, operation->what == FUNCTION);
	add(world, actor, &operation->to, true, operation->what == FUNCTION);
}
