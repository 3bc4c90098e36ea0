/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows, as the other units see them: MPI 5.0, chapter 12. */
#ifndef ADI_WINDOW_WINDOW_H
#define ADI_WINDOW_WINDOW_H

#include "adi/comm/comm.h"
#include "adi/datatype/type.h"

struct adi_win_target;
struct adi_win_origin;
struct adi_win_region;

/* Access epochs of this process. Locks of single processes are counted in `locks`. */
enum adi_epoch { ADI_EPOCH_NONE, ADI_EPOCH_FENCE, ADI_EPOCH_START, ADI_EPOCH_LOCK, ADI_EPOCH_LOCK_ALL };

struct adi_win {
	struct adi_object object;
	struct adi_errhandler *errhandler;
	struct adi_comm *comm; /* of the window's processes; private */
	struct adi_attributes attributes;
	char name[MPI_MAX_OBJECT_NAME];
	struct adi_win *next;  /* in the list of all windows */
	struct adi_info *info; /* hints as MPI_Win_get_info returns them; owned */

	/* The memory of this process. The MPI_WIN_* attributes are the addresses of these fields. */
	void *base;
	MPI_Aint size;
	int disp_unit, flavor, model;

	uint32_t slot;  /* in the table of this process's windows */
	bool owns;      /* base was allocated by malloc for this window */
	bool direct;    /* all processes map all memory of the window: no messages carry data */
	void *map;      /* direct: the shared segment */
	size_t map_size;
	struct adi_win_control *control; /* direct: [comm->size], inside the segment */
	char *held;     /* direct: [comm->size] rows, inside the segment */

	struct adi_win_target *target; /* [comm->size]: the processes as targets of this process's operations */
	struct adi_win_origin *origin; /* [comm->size]: the processes as origins of operations on this process */
	struct adi_win_region *region; /* dynamic windows: attached memory, by address */
	int regions;

	/* Synchronisation. */
	enum adi_epoch epoch;
	bool fence_used;            /* the epoch that a fence began has operations */
	int locks;                  /* targets that MPI_Win_lock has locked */
	bool lock_all_unchecked;    /* MPI_Win_lock_all with MPI_MODE_NOCHECK */
	struct adi_group *started;  /* of MPI_Win_start, ranks in MPI_COMM_WORLD */
	bool posted;                /* an exposure epoch of MPI_Win_post is open */
	int completes;              /* MPI_Win_complete calls that this exposure epoch waits for */
	/* The lock of this process's memory, for messages (not direct). */
	bool locked_exclusive;
	int locked_shared;
	int dead_holders;           /* processes that have died with the lock */
	struct adi_win_origin *waiting, **waiting_end; /* origins that wait for the lock, in order of arrival */
};

int adi_win_take(MPI_Win handle, const char *argument, struct adi_win **found);
static inline MPI_Win adi_win_handle(struct adi_win *win)
{
	return (MPI_Win)adi_object_handle(&win->object);
}
/* The value of a predefined attribute as MPI_Win_get_attr returns it. False: no such predefined attribute. */
bool adi_window_attribute(struct adi_win *win, int keyval, void **value);

/* start registers handlers with the engine, before the first connection, and returns 0 or a negated errno value. end frees
 * everything that was not freed. */
int adi_windows_start(void);
void adi_windows_end(void);

#endif
