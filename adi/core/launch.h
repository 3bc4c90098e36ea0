/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside launch_*.c: process managers, and what the clients of PMI-1 and PMI-2 share. */
#ifndef ADI_CORE_LAUNCH_H
#define ADI_CORE_LAUNCH_H

#include "adi/core/job.h"

#include <stddef.h>

/* The functions of adi/core/job.h for one process manager. init: -ENOENT if this process manager did not start the process. */
struct launch_manager {
	int (*init)(int *rank, int *size, int *local_size);
	int (*publish)(const hr_card_t *card);
	int (*fetch)(int rank, hr_card_t *card);
	int (*meet_start)(void);
	int (*meet_test)(void);
	void (*abort)(int code, const char *message);
	void (*finalize)(void);
};
extern const struct launch_manager launch_pmix __attribute__((weak)); /* not in a build without PMIx */
extern const struct launch_manager launch_pmi1, launch_pmi2;

#define LAUNCH_TEXT 4096 /* bytes of the longest message of a process manager */

/*
 * The descriptor on which this process and the process manager exchange messages: text, a command and fields NAME=VALUE. A
 * message of PMI-1 is a line with blanks between the fields; one of PMI-2 begins with its length in 6 digits, and each field ends
 * with a semicolon.
 */
struct launch_wire {
	int fd;
	char bytes[LAUNCH_TEXT]; /* received and not read yet */
	size_t len;
};
/* Takes the descriptor of the variable PMI_FD. -ENOENT: it is not set. */
int launch_wire_open(struct launch_wire *wire);
int launch_wire_send(struct launch_wire *wire, const char *text, size_t len);
/* Whether bytes can be read, or the connection has ended. */
bool launch_wire_readable(const struct launch_wire *wire);
/* Reads a line without its end, or `len` bytes, as a string. Return 0 or a negated errno value. */
int launch_wire_line(struct launch_wire *wire, char text[LAUNCH_TEXT]);
int launch_wire_bytes(struct launch_wire *wire, size_t len, char text[LAUNCH_TEXT]);
void launch_wire_close(struct launch_wire *wire);

/* Copies the value of a field; separator is behind each field. False: no such field, or too long. */
bool launch_field(const char *text, const char *name, char separator, char *value, size_t max);
/* The number in an environment variable; -1: not set, or no number from 0 on. */
int launch_number(const char *variable);
/* Number of ranks on the machine of a rank, from the value of PMI_process_mapping; 1 if it cannot be told. */
int launch_local_size(const char *mapping, int rank, int size);

/* A card as texts of at most max characters, which the process manager stores under one key each: the n-th text. Returns
 * false if there is no n-th text. add: takes the n-th text back; *more: there is another. Returns 0 or -EPROTO. */
bool launch_card_text(const hr_card_t *card, int n, size_t max, char *text);
int launch_card_add(hr_card_t *card, const char *text, bool *more);
/* Logs that the process manager has no card of a rank, or an invalid one. Returns -EPROTO. */
int launch_card_invalid(int rank, const char *text);

#endif
