/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: creation, memory, release. */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/window/internal.h"

#include "rdma_channel/base/setting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

HR_SETTING(direct_setting, "HEADRACE_WINDOW_DIRECT", "1", 0, 1,
	   "mpi: 1: if all processes of MPI_Win_allocate are on one machine, they share the window's memory");

/* What each process tells the others about its memory. */
struct member {
	int64_t size, disp_unit;
	uint32_t slot;
	uint32_t direct; /* HEADRACE_WINDOW_DIRECT */
	struct adi_machine machine;
};

static struct adi_win *windows; /* all of this process */

int adi_win_take(MPI_Win handle, const char *argument, struct adi_win **found)
{
	struct adi_win *win = adi_object_at(handle, ADI_WIN);
	if (!win)
		return adi_error(MPI_ERR_WIN, "%s is %s; valid: a window that was not freed", argument,
				 adi_handle_text(handle));
	*found = win;
	return MPI_SUCCESS;
}

static void win_destroy(struct adi_win *win)
{
	for (int i = 0; win->comm && win->target && win->origin && i < win->comm->size; i++) {
		if (win->target[i].type)
			adi_type_release(win->target[i].type);
		if (win->origin[i].type)
			adi_type_release(win->origin[i].type);
		if (win->origin[i].shared)
			ch3_unshare(win->origin[i].shared);
	}
	window_slot_remove(win);
	window_segment_unmap(win);
	if (win->owns)
		free(win->base);
	free(win->target);
	free(win->origin);
	free(win->region);
	if (win->info)
		adi_info_release(win->info);
	if (win->errhandler)
		adi_errhandler_release(win->errhandler);
	if (win->started)
		adi_group_release(win->started);
	if (win->comm)
		adi_comm_release(win->comm);
	free(win);
}

static int members_init(struct adi_win *win)
{
	size_t n = (size_t)win->comm->size;
	win->target = calloc(n, sizeof *win->target);
	win->origin = calloc(n, sizeof *win->origin);
	if (!win->target || !win->origin)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a window of %zu processes", n);
	for (size_t i = 0; i < n; i++) {
		win->target[i].peer = &adi_job.peer[adi_group_world(win->comm->local, (int)i)];
		win->origin[i].win = win;
		win->origin[i].rank = (int)i;
	}
	return window_slot_add(win);
}

static int info_init(struct adi_win *win, const struct adi_info *info)
{
	/* The hints of MPI 5.0, section 12.2.1, with their defaults. */
	static const char *const hints[][2] = {
		{ "no_locks", "false" }, { "accumulate_ordering", "rar,raw,war,waw" },
		{ "accumulate_ops", "same_op_no_op" }, { "mpi_accumulate_granularity", "0" },
		{ "same_size", "false" }, { "same_disp_unit", "false" },
	};
	win->info = adi_info_copy(info);
	if (!win->info)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the hints of a window");
	for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
		if (!adi_info_get(win->info, hints[i][0]) && adi_info_put(win->info, hints[i][0], hints[i][1]))
			return adi_error(MPI_ERR_NO_MEM, "no memory for the hints of a window");
	return MPI_SUCCESS;
}

/* Makes a window without memory. Collective. */
static int win_new(struct adi_comm *comm, const struct adi_info *info, int flavor, MPI_Aint size, MPI_Count disp_unit,
		   struct adi_win **made)
{
	if (comm->inter)
		return adi_error(MPI_ERR_COMM, "comm is an intercommunicator; valid: intracommunicators");
	if (size < 0)
		return adi_error(MPI_ERR_SIZE, "size is %" PRId64 "; valid: 0 and above", (int64_t)size);
	if (disp_unit <= 0)
		return adi_error(MPI_ERR_DISP, "disp_unit is %" PRId64 "; valid: 1 and above", (int64_t)disp_unit);
	struct adi_win *win = calloc(1, sizeof *win);
	if (!win)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a window");
	adi_object_init(&win->object, ADI_WIN);
	win->slot = UINT32_MAX;
	win->size = size;
	win->disp_unit = disp_unit > INT32_MAX ? INT32_MAX : (int)disp_unit;
	win->flavor = flavor;
	win->model = MPI_WIN_UNIFIED;
	win->waiting_end = &win->waiting;
	adi_errhandler_set(&win->errhandler, &adi_errors_are_fatal);
	int class = adi_comm_duplicate(comm, &win->comm);
	if (!class)
		class = members_init(win);
	if (!class)
		class = info_init(win, info);
	if (class) {
		win_destroy(win);
		return class;
	}
	win->target[win->comm->rank].disp_unit = disp_unit;
	*made = win;
	return MPI_SUCCESS;
}

/* What the members have in common. */
struct common {
	bool one_machine;
	bool direct; /* all want shared memory */
};

/* Tells all processes size, unit, slot and machine. Collective. */
static int members_exchange(struct adi_win *win, struct common *common)
{
	int n = win->comm->size;
	struct member *all = calloc((size_t)n, sizeof *all);
	uint64_t wish = 0;
	hr_setting_u64(&direct_setting, &wish);
	struct member mine = { win->size, win->target[win->comm->rank].disp_unit, win->slot, (uint32_t)wish, adi_job.machine };
	if (!all)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a window of %d processes", n);
	int class = adi_allgather(&mine, sizeof mine, all, win->comm);
	*common = (struct common){ true, true };
	for (int i = 0; !class && i < n; i++) {
		win->target[i].size = (MPI_Aint)all[i].size;
		win->target[i].disp_unit = (MPI_Aint)all[i].disp_unit;
		win->target[i].slot = all[i].slot;
		common->direct &= all[i].direct == 1;
		common->one_machine &= adi_machine_same(&all[i].machine, &adi_job.machine);
	}
	free(all);
	return class;
}

/* The window is ready. Nobody gets a message of another process before it knows its slot. */
static int win_ready(struct adi_win *win, int class, MPI_Win *handle)
{
	if (!class) {
		/* NULL in a dynamic window: offsets are addresses. */
		win->target[win->comm->rank].base = win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? NULL : win->base;
		class = adi_barrier(win->comm);
	}
	if (class) {
		win_destroy(win);
		return class;
	}
	win->next = windows;
	windows = win;
	*handle = adi_win_handle(win);
	return MPI_SUCCESS;
}

static int own_memory(struct adi_win *win)
{
	size_t bytes = win->size > 0 ? (size_t)win->size : 1;
	win->owns = posix_memalign(&win->base, PAGE, bytes) == 0;
	if (win->owns)
		return MPI_SUCCESS;
	win->base = NULL;
	return adi_error(MPI_ERR_NO_MEM, "no memory of %zu bytes for a window", bytes);
}

int mpi_win_create(void *base, MPI_Aint size, MPI_Count disp_unit, struct adi_info *info, struct adi_comm *comm, MPI_Win *win)
{
	struct adi_win *made;
	struct common common;
	if (!base && size > 0)
		return adi_error(MPI_ERR_ARG, "base is a null pointer and size %" PRId64, (int64_t)size);
	int class = win_new(comm, info, MPI_WIN_FLAVOR_CREATE, size, disp_unit, &made);
	if (class)
		return class;
	made->base = base;
	return win_ready(made, members_exchange(made, &common), win);
}

int mpi_win_create_dynamic(struct adi_info *info, struct adi_comm *comm, MPI_Win *win)
{
	struct adi_win *made;
	struct common common;
	int class = win_new(comm, info, MPI_WIN_FLAVOR_DYNAMIC, 0, 1, &made);
	if (class)
		return class;
	made->base = MPI_BOTTOM;
	return win_ready(made, members_exchange(made, &common), win);
}

int mpi_win_allocate(MPI_Aint size, MPI_Count disp_unit, struct adi_info *info, struct adi_comm *comm, void *baseptr, MPI_Win *win)
{
	struct adi_win *made;
	struct common common;
	int class = win_new(comm, info, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, &made);
	if (class)
		return class;
	class = members_exchange(made, &common);
	/* If the segment cannot be made, which all processes notice, messages carry the data. */
	if (!class && !(common.direct && common.one_machine && comm->size > 1 && window_segment_map(made, true) == MPI_SUCCESS))
		class = own_memory(made);
	class = win_ready(made, class, win);
	if (!class)
		memcpy(baseptr, &made->base, sizeof made->base);
	return class;
}

int mpi_win_allocate_shared(MPI_Aint size, MPI_Count disp_unit, struct adi_info *info, struct adi_comm *comm, void *baseptr,
			    MPI_Win *win)
{
	struct adi_win *made;
	struct common common;
	int class = win_new(comm, info, MPI_WIN_FLAVOR_SHARED, size, disp_unit, &made);
	if (class)
		return class;
	const char *hint = adi_info_get(info, "alloc_shared_noncontig");
	class = members_exchange(made, &common);
	if (!class && !common.one_machine)
		class = adi_error(MPI_ERR_RMA_SHARED, "the processes of comm are on different machines");
	if (!class)
		class = window_segment_map(made, hint && strcmp(hint, "true") == 0);
	class = win_ready(made, class, win);
	if (!class)
		memcpy(baseptr, &made->base, sizeof made->base);
	return class;
}

int mpi_win_free(MPI_Win *win)
{
	struct adi_win *found = NULL;
	int class = adi_win_take(*win, "win", &found);
	if (class)
		return class;
	if ((found->epoch != ADI_EPOCH_NONE && found->epoch != ADI_EPOCH_FENCE) || found->fence_used || found->posted)
		return adi_error(MPI_ERR_RMA_SYNC, "an epoch of the window is open");
	class = adi_attributes_delete(&found->object, &found->attributes);
	if (class)
		return class;
	class = window_flush(found, -1);
	window_keys_wait(found);
	int error = adi_barrier(found->comm);
	for (struct adi_win **link = &windows; *link; link = &(*link)->next)
		if (*link == found) {
			*link = found->next;
			break;
		}
	*win = MPI_WIN_NULL;
	if (adi_object_release(&found->object))
		win_destroy(found);
	return class ? class : error;
}

/* ---- dynamic windows ---- */

static int dynamic_check(const struct adi_win *win)
{
	return win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? MPI_SUCCESS :
		adi_error(MPI_ERR_RMA_FLAVOR, "win was not created by MPI_Win_create_dynamic");
}

int mpi_win_attach(struct adi_win *win, void *base, MPI_Aint size)
{
	int class = dynamic_check(win);
	if (class)
		return class;
	if (size < 0)
		return adi_error(MPI_ERR_SIZE, "size is %" PRId64 "; valid: 0 and above", (int64_t)size);
	int i = 0;
	while (i < win->regions && (uintptr_t)win->region[i].base < (uintptr_t)base)
		i++;
	bool overlaps = (i > 0 && win->region[i - 1].base + win->region[i - 1].size > (char *)base) ||
			(i < win->regions && ((char *)base + size > win->region[i].base || win->region[i].base == (char *)base));
	if (overlaps)
		return adi_error(MPI_ERR_RMA_ATTACH, "memory at %p, %" PRId64 " bytes, is attached already", base, (int64_t)size);
	struct adi_win_region *more = realloc(win->region, ((size_t)win->regions + 1) * sizeof *more);
	if (!more)
		return adi_error(MPI_ERR_NO_MEM, "no memory to attach region %d", win->regions);
	memmove(&more[i + 1], &more[i], (size_t)(win->regions - i) * sizeof *more);
	more[i] = (struct adi_win_region){ base, size };
	win->region = more;
	win->regions++;
	return MPI_SUCCESS;
}

int mpi_win_detach(struct adi_win *win, const void *base)
{
	int class = dynamic_check(win);
	if (class)
		return class;
	for (int i = 0; i < win->regions; i++) {
		if (win->region[i].base != base)
			continue;
		win->regions--;
		memmove(&win->region[i], &win->region[i + 1], (size_t)(win->regions - i) * sizeof *win->region);
		return MPI_SUCCESS;
	}
	return adi_error(MPI_ERR_RMA_ATTACH, "no attached memory begins at %p", base);
}

/* ---- start ---- */

static void on_death(struct adi_peer *peer)
{
	for (struct adi_win *win = windows; win; win = win->next) {
		int rank = adi_group_rank(win->comm->local, peer->rank);
		if (rank == MPI_UNDEFINED)
			continue;
		window_fetches_lost(win, rank, adi_class(peer->error));
		window_origin_died(win, rank);
	}
}

int adi_windows_start(void)
{
	static const struct {
		unsigned type;
		ch3_handler_fn handler;
	} handlers[] = {
		{ WINDOW_PUT, window_on_put }, { WINDOW_GET, window_on_get }, { WINDOW_ACCUMULATE, window_on_accumulate },
		{ WINDOW_FETCH, window_on_accumulate }, { WINDOW_SWAP, window_on_accumulate }, { WINDOW_REPLY, window_on_reply },
		{ WINDOW_TYPE, window_on_type }, { WINDOW_LOCK, window_on_lock }, { WINDOW_GRANT, window_on_grant },
		{ WINDOW_FLUSH, window_on_flush }, { WINDOW_ACK, window_on_ack }, { WINDOW_POST, window_on_post },
		{ WINDOW_COMPLETE, window_on_complete }, { WINDOW_ASK, window_on_ask }, { WINDOW_KEY, window_on_key },
	};
	int error = 0;
	window_adapter_start();
	for (size_t i = 0; !error && i < sizeof handlers / sizeof handlers[0]; i++)
		error = ch3_register(adi_job.engine, handlers[i].type, handlers[i].handler, (void *)(uintptr_t)handlers[i].type);
	if (!error)
		adi_on_death(on_death);
	return error;
}

void window_destroy_all(void)
{
	while (windows) {
		struct adi_win *win = windows;
		windows = win->next;
		win_destroy(win);
	}
}
