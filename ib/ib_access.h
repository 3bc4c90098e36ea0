/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the peer's memory over verbs: the functions of rdma_channel/remote_access.h. */
#ifndef IB_ACCESS_H
#define IB_ACCESS_H

#include "ib/ib_conn.h"
#include "rdma_channel/remote_access.h"

int ib_access_expose(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
int ib_access_share(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
void ib_access_hide(hr_exposed_t *exposed);
int ib_access_write(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, const void *address,
		    size_t len, hr_remote_access_t **write);
int ib_access_read(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
		   hr_remote_access_t **read);
int ib_access_test(struct ib_conn *conn, hr_remote_access_t *access);
void ib_access_end(hr_remote_access_t *access);

/* Returns whether the channel must not sleep: an access has completed since the last ib_access_test, or one that found no
 * room could be continued now. */
bool ib_access_pending(const struct ib_conn *conn);
/* Returns whether reads are in flight, which write into the caller's memory. */
bool ib_access_reading(const struct ib_conn *conn);
/* The connection is about to be freed: its accesses no longer refer to it. */
void ib_access_forget(struct ib_conn *conn);

#endif
