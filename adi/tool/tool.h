/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool interface: MPI 5.0, section 15.3. Its functions return codes and call no error handlers; most may be called at any
 * time, from any thread.
 *
 *	init.c      initialisation, strings
 *	control.c   control variables: the settings of the library
 *	measure.c   performance variables: sessions and handles
 *	measures.c  their values
 *	category.c  categories
 *	event.c     events: there are none
 */
#ifndef ADI_TOOL_TOOL_H
#define ADI_TOOL_TOOL_H

#include "adi/mpi.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether MPI_T_init_thread was called more often than MPI_T_finalize. */
bool tool_running(void);
#define TOOL_CHECK_RUNNING()                               \
	do {                                               \
		if (!tool_running())                       \
			return MPI_T_ERR_NOT_INITIALIZED;  \
	} while (0)

/* Returns a text as MPI 5.0, section 15.3.3 says: *len is the size of the buffer, and becomes the size that the text needs.
 * Both may be NULL. */
void tool_text(const char *text, char *buffer, int *len);
/* Stores a result if the program wants it. */
static inline void tool_put(int *place, int value)
{
	if (place)
		*place = value;
}

int tool_controls(void);
int tool_measures(void);

/* A performance variable. */
struct tool_measure {
	const char *name, *description;
	int class; /* MPI_T_PVAR_CLASS_COUNTER or _LEVEL */
	uint64_t (*read)(void);
};
extern const struct tool_measure tool_measure[];

#endif
