/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwards ch3's accesses to remote memory to the transport of the connection. */
#include "rdma_channel/remote_access.h"

#include "rdma_channel/impl.h"

#include <errno.h>

/* Call this before a function of the transport. As put and get, that function may consume an event, so the connection
 * must be awake. */
static int before(hr_conn_t *conn)
{
	if (conn->phase != HR_PHASE_UP || conn->error)
		return conn->error ? conn->error : -ENOTCONN;
	hr_conn_rouse(conn);
	return 0;
}

bool hr_remote_can(hr_conn_t *conn)
{
	return conn->phase == HR_PHASE_UP && conn->transport->remote_expose;
}

int hr_remote_expose(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	int error = before(conn);
	if (error)
		return error;
	return hr_remote_can(conn) ? conn->transport->remote_expose(conn->data, address, len, exposed, token)
				   : -ENOTSUP;
}

int hr_remote_share(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	int error = before(conn);
	if (error)
		return error;
	return hr_remote_can(conn) ? conn->transport->remote_share(conn->data, address, len, exposed, token) : -ENOTSUP;
}

void hr_remote_hide(hr_exposed_t *exposed)
{
	exposed->transport->remote_hide(exposed);
}

int hr_remote_write(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
		    hr_remote_access_t **write)
{
	int error = before(conn);
	if (error)
		return error;
	return hr_remote_can(conn) ? conn->transport->remote_write(conn->data, token, offset, address, len, write)
				   : -ENOTSUP;
}

int hr_remote_read(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
		   hr_remote_access_t **read)
{
	int error = before(conn);
	if (error)
		return error;
	return hr_remote_can(conn) ? conn->transport->remote_read(conn->data, token, offset, address, len, read) : -ENOTSUP;
}

int hr_remote_test(hr_conn_t *conn, hr_remote_access_t *access)
{
	int error = before(conn);
	return error ? error : conn->transport->remote_test(conn->data, access);
}

void hr_remote_end(hr_remote_access_t *access)
{
	access->transport->remote_end(access);
}
