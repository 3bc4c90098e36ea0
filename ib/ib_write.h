/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote writes over verbs: the functions of rdma_channel/remote_write.h. */
#ifndef IB_WRITE_H
#define IB_WRITE_H

#include "ib/ib_conn.h"
#include "rdma_channel/remote_write.h"

int ib_write_expose(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
void ib_write_hide(hr_exposed_t *exposed);
int ib_write_start(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, const void *address,
		   size_t len, hr_remote_write_t **write);
int ib_write_test(struct ib_conn *conn, hr_remote_write_t *write);
void ib_write_end(hr_remote_write_t *write);

/* Returns whether the channel must not sleep: a write has completed since the last ib_write_test, or a write that found
 * no room could be continued now. */
bool ib_write_pending(const struct ib_conn *conn);

#endif
