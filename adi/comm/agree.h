/* SPDX-License-Identifier: BSD-3-Clause */
/* How processes agree on the context of a new communicator. For the files of comm/ only. */
#ifndef ADI_COMM_AGREE_H
#define ADI_COMM_AGREE_H

#include "adi/comm/comm.h"

#include <assert.h>

/* context.c: a context that no communicator of this process has, from this process's range; 0: all are in use. */
uint32_t adi_context_new(void);
/* The class of a 0 in the place of a context, with its text. */
int adi_error_contexts(void) __attribute__((cold));
/* The table of this process's communicators, which says what contexts are in use. */
/* False: no memory. */
bool adi_context_take(struct adi_comm *comm);
void adi_context_return(struct adi_comm *comm);
/* Any communicator of the table, or NULL. */
struct adi_comm *adi_context_any(void);
void adi_contexts_end(void);

/* A process of a group offers its contexts to the others, or the leader of a group to the leader of another. On the wire. */
struct adi_offer {
	uint32_t context; /* sender: its range; receiver: takes it if the sender is the one who decides. 0: none is left */
	uint32_t inside;  /* the same for the local groups of an intercommunicator */
	int32_t size;     /* sender: processes in its group; receiver: checks it, to receive their ranks */
	int32_t class;    /* sender: an error that ends the operation, or MPI_SUCCESS */
	uint64_t value;   /* hash of a string, which the receiver compares, or what the operation says */
};
static_assert(sizeof(struct adi_offer) == 24, "wire format");

/* An offer of contexts of this process: one, or two for an intercommunicator. */
struct adi_offer adi_offer_new(bool inter);

/* A place where messages of creation meet. */
struct adi_place {
	uint32_t context;
	int tag;
};
static inline struct adi_place adi_place_ordered(const struct adi_comm *comm)
{
	return (struct adi_place){ comm->context + ADI_CONTEXT_ORDERED, 0 };
}

/* agree.c. All block, make progress and return an error class. */

/* Exchanges bytes with the process of a world rank. */
int adi_agree_exchange(struct adi_place place, int world, const void *mine, size_t mine_bytes, void *theirs,
		       size_t theirs_bytes);
/* The group's rank `root` gives bytes to all others. Collective over the group, of which this process is a member. */
int adi_agree_tell(struct adi_place place, struct adi_group *group, int root, void *data, size_t bytes);
/* The group's rank 0 chooses a context for it. */
int adi_agree_context(struct adi_place place, struct adi_group *group, uint32_t *context);
/* As adi_agree_context, and makes the intracommunicator. */
int adi_agree_comm(struct adi_place place, struct adi_group *group, struct adi_comm *parent, struct adi_comm **created);
/* The place of a string, and a longer hash of it for the check of the offers. */
int adi_agree_string(const char *string, struct adi_place *place, uint64_t *hash);

#endif
