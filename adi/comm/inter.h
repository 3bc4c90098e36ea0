/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting communicators, for the files of comm/ only. */
#ifndef ADI_COMM_INTER_H
#define ADI_COMM_INTER_H

#include "adi/comm/agree.h"

/* What a process says when a communicator is split. On the wire. */
struct adi_split {
	int32_t color;
	int32_t key;
	uint32_t context, inside; /* an offer, which the first process of the new communicator makes good */
};
static_assert(sizeof(struct adi_split) == 16, "wire format");

/* The processes of group which said color, in the order of key and rank: their world ranks; *n is their number and *first
 * the rank in group of the first. NULL: no memory. */
int *adi_split_members(const struct adi_split *said, struct adi_group *group, int color, int *n, int *first);

/* MPI_Comm_split of an intracommunicator. *created is NULL for a process with the color MPI_UNDEFINED. */
int adi_comm_divide(struct adi_comm *comm, int color, int key, struct adi_comm **created);
/* The two leaders of an intercommunicator, its ranks 0, exchange bytes and tell their groups. Returns an error class. */
int adi_inter_exchange(struct adi_comm *comm, const void *mine, size_t mine_bytes, void *theirs, size_t theirs_bytes);
/* MPI_Comm_split of an intercommunicator. */
int adi_inter_split(struct adi_comm *comm, int color, int key, MPI_Comm *newcomm);

/* Error class if a process of group is no member of the group `of`, which whose describes. */
int adi_check_members(struct adi_group *group, struct adi_group *of, const char *whose);

/* The class of an error that another process has met and that ends the operation here too. */
int adi_error_elsewhere(int class);

#endif
