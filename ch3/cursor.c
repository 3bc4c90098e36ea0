/* SPDX-License-Identifier: BSD-3-Clause */
/* Cursors over vectors of buffers: consume, trim, scatter. */
#include "ch3/internal.h"

#include <string.h>

size_t ch3_cursor_bytes(const struct ch3_cursor *cursor)
{
	size_t bytes = 0;
	for (int i = 0; i < cursor->n; i++)
		if (__builtin_add_overflow(bytes, cursor->piece[i].iov_len, &bytes))
			return SIZE_MAX;
	return bytes;
}

void ch3_cursor_advance(struct ch3_cursor *cursor, size_t bytes)
{
	while (cursor->n > 0 && bytes >= cursor->piece->iov_len) {
		bytes -= cursor->piece->iov_len;
		cursor->piece++;
		cursor->n--;
	}
	if (cursor->n > 0 && bytes > 0) {
		cursor->piece->iov_base = (char *)cursor->piece->iov_base + bytes;
		cursor->piece->iov_len -= bytes;
	}
}

void ch3_cursor_trim(struct ch3_cursor *cursor, uint64_t bytes)
{
	int i = 0;
	while (i < cursor->n && bytes > 0) {
		if (cursor->piece[i].iov_len > bytes)
			cursor->piece[i].iov_len = (size_t)bytes;
		bytes -= cursor->piece[i].iov_len;
		i++;
	}
	cursor->n = i;
}

size_t ch3_scatter(const struct iovec *iov, int n, const void *bytes, size_t len, hr_conn_t *conn)
{
	size_t filled = 0;
	for (int i = 0; i < n && filled < len; i++) {
		size_t some = len - filled < iov[i].iov_len ? len - filled : iov[i].iov_len;
		if (conn && some >= HR_DRAIN_MIN)
			hr_conn_drain(conn, iov[i].iov_base, (const char *)bytes + filled, some);
		else if (some > 0)
			memcpy(iov[i].iov_base, (const char *)bytes + filled, some);
		filled += some;
	}
	return filled;
}

size_t ch3_cursor_fill(struct ch3_cursor *cursor, const void *bytes, size_t len, hr_conn_t *conn)
{
	size_t filled = ch3_scatter(cursor->piece, cursor->n, bytes, len, conn);
	ch3_cursor_advance(cursor, filled);
	return filled;
}
