/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues: states, flushing, room, completion events, receives that are not there. */
#include "test/ibverbs_double/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct end end[2];

/* ---- states ---- */

START_TEST(states_are_taken_in_turn)
{
	end_open(&end[0]);
	IS(end_to_rtr(&end[0], end[0].qp->qp_num, 1), EINVAL);
	IS(end_to_rts(&end[0], 1), EINVAL);
	IS(end_state(&end[0]), IBV_QPS_RESET);
	IS(end_to_init(&end[0]), 0);
	IS(end_to_rts(&end[0], 1), EINVAL);
	IS(end_to_rtr(&end[0], end[0].qp->qp_num, 1), 0);
	IS(end_to_init(&end[0]), EINVAL);
	IS(end_to_rts(&end[0], 1), 0);
	IS(end_state(&end[0]), IBV_QPS_RTS);
	IS(end_to_rts(&end[0], 1), EINVAL);
	end_close(&end[0]);
}
END_TEST

START_TEST(a_transition_needs_its_attributes)
{
	end_open(&end[0]);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	static const int all[] = { IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS };
	int whole = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	for (int i = 0; i < 3; i++)
		IS(ibv_modify_qp(end[0].qp, &attr, whole & ~all[i]), EINVAL);
	IS(ibv_modify_qp(end[0].qp, &attr, whole | IBV_QP_RQ_PSN), EINVAL);
	attr.port_num = 2;
	IS(ibv_modify_qp(end[0].qp, &attr, whole), EINVAL);
	attr.port_num = PORT;
	attr.pkey_index = 100;
	IS(ibv_modify_qp(end[0].qp, &attr, whole), EINVAL);
	IS(end_state(&end[0]), IBV_QPS_RESET);
	end_close(&end[0]);
}
END_TEST

START_TEST(nothing_is_posted_before_its_state)
{
	struct ibv_sge sge;
	end_open(&end[0]);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[0], 0, 8, &sge);
	IS(end_post_recv(&end[0], 1, 0, 8), EINVAL);
	IS(end_post(&end[0], &request), EINVAL);
	IS(end_to_init(&end[0]), 0);
	IS(end_post_recv(&end[0], 1, 0, 8), 0);
	IS(end_post(&end[0], &request), EINVAL);
	IS(end_to_rtr(&end[0], end[0].qp->qp_num, 1), 0);
	IS(end_post(&end[0], &request), EINVAL);
	end_close(&end[0]);
}
END_TEST

/* ---- flushing ---- */

static void modify(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	IS(ibv_modify_qp(end[0].qp, &attr, IBV_QP_STATE), 0);
}

START_TEST(an_error_flushes_what_is_behind_it)
{
	struct ibv_sge sge[4];
	struct ibv_send_wr request[4];
	ends_open(end);
	for (unsigned i = 0; i < 3; i++)
		IS(end_post_recv(&end[0], 100 + i, 0, 8), 0);
	for (unsigned i = 0; i < 4; i++) {
		request[i] = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge[i]);
		request[i].wr_id = i;
		request[i].send_flags = 0; /* all but the first, which is good, are told of although none is signaled */
		request[i].next = i < 3 ? &request[i + 1] : NULL;
	}
	request[1].wr.rdma.rkey++;
	IS(end_post(&end[0], request), 0);
	/* The receives may come anywhere among them. */
	unsigned sends = 1, receives = 100;
	for (int i = 0; i < 6; i++) {
		struct ibv_wc got = end_wait(&end[0]);
		if (got.wr_id >= 100) {
			IS(got.wr_id, receives++);
			IS(got.status, IBV_WC_WR_FLUSH_ERR);
		} else {
			IS(got.status, got.wr_id == 1 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
			IS(got.wr_id, sends++);
		}
	}
	struct ibv_wc none;
	IS(ibv_poll_cq(end[0].cq, 1, &none), 0);
	ends_close(end);
}
END_TEST

START_TEST(the_error_state_flushes_and_goes_on_flushing)
{
	ends_open(end);
	IS(end_post_recv(&end[0], 5, 0, 8), 0);
	modify(IBV_QPS_ERR);
	IS(end_wait(&end[0]).status, IBV_WC_WR_FLUSH_ERR);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_WR_FLUSH_ERR);
	IS(end_post_recv(&end[0], 6, 0, 8), 0);
	struct ibv_wc got = end_wait(&end[0]);
	IS(got.wr_id, 6);
	IS(got.status, IBV_WC_WR_FLUSH_ERR);
	ends_close(end);
}
END_TEST

START_TEST(reset_forgets_and_allows_a_new_connection)
{
	ends_open(end);
	IS(end_post_recv(&end[0], 5, 0, 8), 0);
	modify(IBV_QPS_ERR);
	modify(IBV_QPS_RESET);
	struct ibv_wc none;
	IS(ibv_poll_cq(end[0].cq, 1, &none), 0);
	end_connect(&end[0], end[1].qp->qp_num, 100);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

/* ---- room ---- */

START_TEST(a_slot_is_free_when_its_completion_was_polled)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	request.send_flags = 0;
	for (int i = 0; i < END_DEPTH - 1; i++)
		IS(end_post(&end[0], &request), 0);
	request.send_flags = IBV_SEND_SIGNALED;
	IS(end_post(&end[0], &request), 0);
	IS(end_post(&end[0], &request), ENOMEM); /* all are done, but nobody has looked */
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	for (int i = 0; i < END_DEPTH; i++)
		IS(end_post(&end[0], &request), 0);
	ends_close(end);
}
END_TEST

START_TEST(receives_have_room_for_their_depth)
{
	ends_open(end);
	for (unsigned i = 0; i < END_DEPTH; i++)
		IS(end_post_recv(&end[0], i, 0, 8), 0);
	IS(end_post_recv(&end[0], 99, 0, 8), ENOMEM);
	IS(end_do(IBV_WR_SEND, &end[1], &end[0], 0, 8), IBV_WC_SUCCESS);
	IS(end_post_recv(&end[0], 99, 0, 8), 0);
	ends_close(end);
}
END_TEST

START_TEST(a_full_completion_queue_is_an_error)
{
	struct ibv_sge sge;
	plan.cqe = 4;
	ends_open(end);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	for (int i = 0; i < 5; i++)
		IS(end_post(&end[0], &request), 0);
	IS(end_event(&end[0]), IBV_EVENT_CQ_ERR);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	for (int i = 0; i < 4; i++)
		IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	struct ibv_wc none;
	IS(ibv_poll_cq(end[0].cq, 1, &none), 0);
	ends_close(end);
}
END_TEST

START_TEST(objects_in_use_are_not_destroyed)
{
	ends_open(end);
	IS(ibv_dealloc_pd(end[0].pd), EBUSY);
	IS(ibv_destroy_cq(end[0].cq), EBUSY);
	IS(ibv_destroy_comp_channel(end[0].channel), EBUSY);
	ends_close(end);
}
END_TEST

/* ---- completion events ---- */

START_TEST(an_armed_queue_tells_once)
{
	ends_open(end);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	ck_assert(!end_woken(&end[0])); /* it was not armed */
	IS(ibv_req_notify_cq(end[0].cq, 0), 0);
	IS(ibv_req_notify_cq(end[0].cq, 0), 0);
	ck_assert(!end_woken(&end[0])); /* and nothing has come since */
	for (int i = 0; i < 3; i++)
		IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	ck_assert(end_woken(&end[0]));
	ck_assert(!end_woken(&end[0]));
	ends_close(end);
}
END_TEST

START_TEST(arming_does_not_tell_of_what_is_there)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(ibv_req_notify_cq(end[0].cq, 0), 0);
	ck_assert(!end_woken(&end[0])); /* why a program must poll after arming */
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(solicited_only_tells_of_those)
{
	struct ibv_sge sge;
	ends_open(end);
	for (unsigned i = 0; i < 4; i++)
		IS(end_post_recv(&end[1], i, 0, 8), 0);
	struct ibv_send_wr request = end_request(IBV_WR_SEND, &end[0], &end[1], 0, 8, &sge);
	IS(ibv_req_notify_cq(end[1].cq, 1), 0);
	IS(end_post(&end[0], &request), 0);
	ck_assert(!end_woken(&end[1]));
	request.send_flags |= IBV_SEND_SOLICITED;
	IS(end_post(&end[0], &request), 0);
	ck_assert(end_woken(&end[1]));
	IS(ibv_req_notify_cq(end[1].cq, 1), 0);
	IS(ibv_req_notify_cq(end[1].cq, 0), 0); /* asks for more */
	request.send_flags &= ~(unsigned)IBV_SEND_SOLICITED;
	IS(end_post(&end[0], &request), 0);
	ck_assert(end_woken(&end[1]));
	IS(ibv_req_notify_cq(end[0].cq, 1), 0);
	request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	request.wr.rdma.rkey++;
	IS(end_post(&end[0], &request), 0);
	ck_assert(end_woken(&end[0])); /* an error counts as solicited */
	ends_close(end);
}
END_TEST

/* ---- receives ---- */

START_TEST(without_a_receive_the_sender_gives_up)
{
	plan.rnr_retries = 2;
	ends_open(end);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 8), IBV_WC_RNR_RETRY_EXC_ERR);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	IS(end_state(&end[1]), IBV_QPS_RTS);
	ends_close(end);
}
END_TEST

START_TEST(seven_means_for_ever)
{
	struct ibv_sge sge;
	struct ibv_wc none;
	plan.rnr_retries = 7;
	ends_open(end);
	struct ibv_send_wr request = end_request(IBV_WR_SEND, &end[0], &end[1], 0, 8, &sge);
	IS(end_post(&end[0], &request), 0);
	for (int i = 0; i < 100000; i++)
		IS(ibv_poll_cq(end[0].cq, 1, &none), 0);
	IS(end_post_recv(&end[1], 1, 0, 8), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	IS(end_wait(&end[1]).status, IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(a_shared_receive_queue_serves_its_queue_pairs)
{
	end_open(&end[0]);
	end_open(&end[1]);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(end[1].pd, &attr);
	ck_assert_ptr_nonnull(srq);
	IS(ibv_destroy_qp(end[1].qp), 0);
	plan.srq = srq;
	end_make_qp(&end[1]);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	end_connect(&end[1], end[0].qp->qp_num, 1);
	IS(end_post_recv(&end[1], 1, 0, 8), EINVAL);
	struct ibv_sge sge = { (uintptr_t)end[1].bytes + 96, 8, end[1].mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 4, .sg_list = &sge, .num_sge = 1 }, *bad;
	for (int i = 0; i < 2; i++)
		IS(ibv_post_srq_recv(srq, &recv, &bad), 0);
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	IS(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	memset(end[0].bytes, 3, 8);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	IS(end_wait(&end[1]).wr_id, 4);
	IS(end[1].bytes[96 + 7], 3);
	IS(end_event(&end[1]), IBV_EVENT_SRQ_LIMIT_REACHED);
	IS(ibv_destroy_srq(srq), EBUSY);
	IS(ibv_destroy_qp(end[1].qp), 0);
	IS(ibv_destroy_srq(srq), 0);
	plan.srq = NULL;
	end_make_qp(&end[1]);
	ends_close(end);
}
END_TEST

TCase *rules_of_queues(void)
{
	TCase *made = tcase_create("queues");
	tcase_add_test(made, states_are_taken_in_turn);
	tcase_add_test(made, a_transition_needs_its_attributes);
	tcase_add_test(made, nothing_is_posted_before_its_state);
	tcase_add_test(made, an_error_flushes_what_is_behind_it);
	tcase_add_test(made, the_error_state_flushes_and_goes_on_flushing);
	tcase_add_test(made, reset_forgets_and_allows_a_new_connection);
	tcase_add_test(made, a_slot_is_free_when_its_completion_was_polled);
	tcase_add_test(made, receives_have_room_for_their_depth);
	tcase_add_test(made, a_full_completion_queue_is_an_error);
	tcase_add_test(made, objects_in_use_are_not_destroyed);
	tcase_add_test(made, an_armed_queue_tells_once);
	tcase_add_test(made, arming_does_not_tell_of_what_is_there);
	tcase_add_test(made, solicited_only_tells_of_those);
	tcase_add_test(made, without_a_receive_the_sender_gives_up);
	tcase_add_test(made, seven_means_for_ever);
	tcase_add_test(made, a_shared_receive_queue_serves_its_queue_pairs);
	return made;
}
