/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected queue pairs over libibverbs, for the tests of the double. */
#include "test/ibverbs_double/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		      IBV_ACCESS_REMOTE_ATOMIC };

struct ends_plan plan = {
	.depth = END_DEPTH, .cqe = 4 * END_DEPTH,
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.timeout = 8, .retries = 3, .rnr_retries = 3, .rnr_timer = 1,
};

/* ---- making ---- */

void end_make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq, .recv_cq = end->cq, .srq = plan.srq, .qp_type = IBV_QPT_RC,
		.sq_sig_all = plan.sq_sig_all,
		.cap = { .max_send_wr = (uint32_t)plan.depth, .max_recv_wr = (uint32_t)plan.depth, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 64 },
	};
	end->qp = ibv_create_qp(end->pd, &init);
	ck_assert_ptr_nonnull(end->qp);
}

void end_open(struct end *end)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	ck_assert_str_eq(ibv_get_device_name(list[0]), "double0");
	end->verbs = ibv_open_device(list[0]);
	ck_assert_ptr_nonnull(end->verbs);
	ibv_free_device_list(list);
	end->pd = ibv_alloc_pd(end->verbs);
	end->channel = ibv_create_comp_channel(end->verbs);
	ck_assert_ptr_nonnull(end->channel);
	IS(fcntl(end->channel->fd, F_SETFL, O_NONBLOCK), 0);
	IS(fcntl(end->verbs->async_fd, F_SETFL, O_NONBLOCK), 0);
	end->cq = ibv_create_cq(end->verbs, plan.cqe, end, end->channel, 0);
	ck_assert_ptr_nonnull(end->cq);
	end->bytes = calloc(1, END_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->bytes, END_BYTES, EVERY_ACCESS);
	ck_assert_ptr_nonnull(end->mr);
	end_make_qp(end);
}

void end_close(struct end *end)
{
	IS(ibv_destroy_qp(end->qp), 0);
	IS(ibv_dereg_mr(end->mr), 0);
	IS(ibv_destroy_cq(end->cq), 0);
	IS(ibv_destroy_comp_channel(end->channel), 0);
	IS(ibv_dealloc_pd(end->pd), 0);
	IS(ibv_close_device(end->verbs), 0);
	free(end->bytes);
}

int end_to_init(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT,
				    .qp_access_flags = (unsigned)plan.access };
	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int end_to_rtr(struct end *end, uint32_t qp_num, uint32_t psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp_num,
				    .rq_psn = psn, .max_dest_rd_atomic = 4, .min_rnr_timer = plan.rnr_timer };
	attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = PORT };
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	IS(ibv_query_gid(end->verbs, PORT, GID_INDEX, &attr.ah_attr.grh.dgid), 0);
	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int end_to_rts(struct end *end, uint32_t psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = plan.timeout, .retry_cnt = plan.retries,
				    .rnr_retry = plan.rnr_retries, .sq_psn = psn, .max_rd_atomic = 4 };
	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

void end_connect(struct end *end, uint32_t qp_num, uint32_t psn)
{
	IS(end_to_init(end), 0);
	IS(end_to_rtr(end, qp_num, psn), 0);
	IS(end_to_rts(end, psn), 0);
}

void ends_open(struct end end[2])
{
	for (int i = 0; i < 2; i++)
		end_open(&end[i]);
	for (int i = 0; i < 2; i++)
		end_connect(&end[i], end[!i].qp->qp_num, 100);
}

void ends_close(struct end end[2])
{
	for (int i = 0; i < 2; i++)
		end_close(&end[i]);
}

enum ibv_qp_state end_state(const struct end *end)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	IS(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* ---- requests ---- */

struct ibv_send_wr end_request(enum ibv_wr_opcode opcode, const struct end *from, const struct end *to, size_t offset,
			       uint32_t len, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ (uintptr_t)from->bytes + offset, len, from->mr->lkey };
	struct ibv_send_wr request = { .wr_id = 7, .sg_list = sge, .num_sge = 1, .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED };
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request.wr.atomic.remote_addr = (uintptr_t)to->bytes + offset;
		request.wr.atomic.rkey = to->mr->rkey;
	} else {
		request.wr.rdma.remote_addr = (uintptr_t)to->bytes + offset;
		request.wr.rdma.rkey = to->mr->rkey;
	}
	return request;
}

int end_post(struct end *end, struct ibv_send_wr *request)
{
	struct ibv_send_wr *bad = NULL;
	return ibv_post_send(end->qp, request, &bad);
}

enum ibv_wc_status end_do(enum ibv_wr_opcode opcode, struct end *from, struct end *to, size_t offset, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr request = end_request(opcode, from, to, offset, len, &sge);
	IS(end_post(from, &request), 0);
	return end_wait(from).status;
}

int end_post_recv(struct end *end, uint64_t id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes + offset, len, end->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	return ibv_post_recv(end->qp, &recv, &bad);
}

struct ibv_wc end_wait(struct end *end)
{
	struct ibv_wc completion;
	int n;
	do {
		n = ibv_poll_cq(end->cq, 1, &completion);
		if (n == 0)
			poll(NULL, 0, 0);
	} while (n == 0);
	IS(n, 1);
	return completion;
}

enum ibv_event_type end_event(struct end *end)
{
	struct pollfd fd = { .fd = end->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	while (poll(&fd, 1, -1) < 0)
		IS(errno, EINTR);
	IS(ibv_get_async_event(end->verbs, &event), 0);
	ibv_ack_async_event(&event);
	return event.event_type;
}

bool end_woken(struct end *end)
{
	struct ibv_cq *cq;
	void *context;
	if (ibv_get_cq_event(end->channel, &cq, &context)) {
		IS(errno, EAGAIN);
		return false;
	}
	ck_assert_ptr_eq(cq, end->cq);
	ck_assert_ptr_eq(context, end);
	ibv_ack_cq_events(cq, 1);
	return true;
}

uint8_t pattern(unsigned seed, size_t offset)
{
	return (uint8_t)((offset * 31 + seed * 7 + (offset >> 8)) | 1);
}

void end_fill(struct end *end, unsigned seed)
{
	for (size_t i = 0; i < END_BYTES; i++)
		end->bytes[i] = pattern(seed, i);
}
