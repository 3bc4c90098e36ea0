/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending payloads that are not contiguous: the caller's function packs them into records in place (rdma_channel/upper.h).
 * Over transports without such records, or if there is no room, it packs a part into memory, which put sends. */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of payload of a record: a quarter of what is left, so that the receiver unpacks this record while the next is
 * packed, but within these limits. A multiple of RECORD_STEP, so that few blocks of the data are divided. */
#define RECORD_STEP 1024u
#define RECORD_LEAST 2048u
#define RECORD_MOST (HR_RECORD_MAX - RECORD_STEP)
_Static_assert(RECORD_STEP >= CH3_FRONT_MAX, "a record of RECORD_MOST bytes of payload has room for the front");

/* Size of the part that is packed into memory. If the transport has records in place, it is sent only while the pipe is
 * full, or near the end of the ring. */
#define PART 65536u
#define PART_BESIDE_RECORDS 1024u

/* Packs the next bytes into a record, behind the front if that was not sent yet. Returns false if there is no room. */
static bool pack_record(ch3_vc_t *vc, ch3_request_t *request)
{
	struct iovec front = request->cursor.n ? *request->cursor.piece : (struct iovec){ NULL, 0 };
	uint64_t left = request->to_pack;
	size_t len = (size_t)(left / 4) & ~(size_t)(RECORD_STEP - 1);
	len = len < RECORD_LEAST ? RECORD_LEAST : len > RECORD_MOST ? RECORD_MOST : len;
	len = len < left ? len : (size_t)left;
	size_t hint = front.iov_len < HR_FRONT_MAX ? front.iov_len : HR_FRONT_MAX;
	uint8_t *at = hr_conn_reserve(vc->conn, hint, front.iov_len + len);
	if (!at)
		return false;
	hr_copy(at, front.iov_base, front.iov_len);
	request->pack(request->context, at + front.iov_len, len);
	hr_conn_commit(vc->conn, front.iov_len + len);
	request->cursor.n = 0;
	request->to_pack -= len;
	vc->engine->moved++;
	ch3_vc_activate(vc);
	return true;
}

void ch3_pack_some(ch3_vc_t *vc, ch3_request_t *request)
{
	if (request->put_was_short)
		return;
	while (request->to_pack > 0 && pack_record(vc, request))
		;
	if (request->to_pack == 0 || request->cursor.n > 0)
		return;
	size_t len = request->to_pack < request->part_max ? (size_t)request->to_pack : request->part_max;
	request->pack(request->context, request->copy, len);
	request->to_pack -= len;
	request->iov[1] = (struct iovec){ request->copy, len };
	request->cursor = (struct ch3_cursor){ request->iov + 1, 1 };
}

static ch3_request_t *request_new(ch3_vc_t *vc, size_t payload_len, ch3_pack_fn pack, void *context)
{
	size_t part = hr_conn_in_place(vc->conn) ? PART_BESIDE_RECORDS : PART;
	part = part < payload_len ? part : payload_len;
	void *copy = malloc(part);
	ch3_request_t *request = copy ? ch3_request_new(vc->engine, 1) : NULL;
	if (!request) {
		free(copy);
		return NULL;
	}
	request->copy = copy;
	request->part_max = part;
	request->pack = pack;
	request->context = context;
	return request;
}

int ch3_send_pack(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, size_t payload_len,
		  ch3_pack_fn pack, void *context, unsigned flags, ch3_request_t **request)
{
	int error = ch3_send_check(vc, type, header, header_len, 0, flags, request);
	if (!error && (flags & CH3_SEND_COPY || !request || !pack || !payload_len))
		error = -EINVAL;
	if (!error && !vc->conn)
		error = ch3_vc_open(vc);
	if (error)
		return error;
	ch3_request_t *send = request_new(vc, payload_len, pack, context);
	if (!send)
		return -ENOMEM;
	if ((flags & CH3_SEND_SYNC) || (payload_len > vc->engine->eager_max && !(flags & CH3_SEND_EAGER))) {
		error = ch3_rndv_announce(vc, send, type, header, header_len, payload_len);
		if (error) {
			send->detached = true;
			ch3_request_complete(send, error);
			return error;
		}
		*request = send;
		return 0;
	}
	struct ch3_packet_more more = { payload_len, 0, 0 };
	bool long_payload = payload_len > UINT32_MAX;
	size_t front_len = ch3_front_write(vc, send->front, type, 0, header, header_len,
					   long_payload ? 0 : (uint32_t)payload_len, long_payload ? &more : NULL);
	send->iov[0] = (struct iovec){ send->front, front_len };
	send->cursor = (struct ch3_cursor){ send->iov, 1 };
	send->to_pack = payload_len;
	ch3_queue_append(vc, send);
	*request = send;
	if (ch3_request_test(send)) {
		error = ch3_request_error(send);
		ch3_request_free(send);
		*request = NULL;
	}
	return error;
}
