/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault on command happens where it was asked for, and only there. */
#include "test/ibverbs_double/ends.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct end end[2];

/* end[0] has the faults, end[1] has none. */
static void open_with(const char *faults)
{
	end_open(&end[1]);
	setenv("HR_VERBS_DOUBLE_FAULT", faults, 1);
	end_open(&end[0]);
	for (int i = 0; i < 2; i++)
		end_connect(&end[i], end[!i].qp->qp_num, 100);
}

static const struct { const char *name; enum ibv_wc_status status; } statuses[] = {
	{ "loc_len_err", IBV_WC_LOC_LEN_ERR }, { "loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR },
	{ "loc_eec_op_err", IBV_WC_LOC_EEC_OP_ERR }, { "loc_prot_err", IBV_WC_LOC_PROT_ERR },
	{ "wr_flush_err", IBV_WC_WR_FLUSH_ERR }, { "mw_bind_err", IBV_WC_MW_BIND_ERR },
	{ "bad_resp_err", IBV_WC_BAD_RESP_ERR }, { "loc_access_err", IBV_WC_LOC_ACCESS_ERR },
	{ "rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR }, { "rem_access_err", IBV_WC_REM_ACCESS_ERR },
	{ "rem_op_err", IBV_WC_REM_OP_ERR }, { "retry_exc_err", IBV_WC_RETRY_EXC_ERR },
	{ "rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR }, { "loc_rdd_viol_err", IBV_WC_LOC_RDD_VIOL_ERR },
	{ "rem_inv_rd_req_err", IBV_WC_REM_INV_RD_REQ_ERR }, { "rem_abort_err", IBV_WC_REM_ABORT_ERR },
	{ "inv_eecn_err", IBV_WC_INV_EECN_ERR }, { "inv_eec_state_err", IBV_WC_INV_EEC_STATE_ERR },
	{ "fatal_err", IBV_WC_FATAL_ERR }, { "resp_timeout_err", IBV_WC_RESP_TIMEOUT_ERR },
	{ "general_err", IBV_WC_GENERAL_ERR }, { "tm_err", IBV_WC_TM_ERR },
	{ "tm_rndv_incomplete", IBV_WC_TM_RNDV_INCOMPLETE },
};
enum { N_STATUSES = sizeof statuses / sizeof *statuses };

START_TEST(the_nth_request_of_a_kind_fails)
{
	char faults[60];
	snprintf(faults, sizeof faults, "error:write:3:%s", statuses[_i].name);
	open_with(faults);
	memset(end[0].bytes, 1, 100);
	for (int i = 0; i < 2; i++)
		IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	IS(end_do(IBV_WR_RDMA_READ, &end[0], &end[1], 80, 8), IBV_WC_SUCCESS);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 50, 8), statuses[_i].status);
	IS(end[1].bytes[50], 0);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 50, 8), IBV_WC_WR_FLUSH_ERR);
	ends_close(end);
}
END_TEST

START_TEST(calls_fail_by_number)
{
	setenv("HR_VERBS_DOUBLE_FAULT",
	       "fail:reg_mr:2:EPERM,fail:alloc_pd:2,fail:create_cq:2,fail:create_qp:2,fail:create_comp_channel:2+", 1);
	end_open(&end[0]);
	struct end *one = &end[0];
	ck_assert_ptr_null(ibv_reg_mr(one->pd, one->bytes, 10, 0));
	IS(errno, EPERM);
	struct ibv_mr *mr = ibv_reg_mr(one->pd, one->bytes, 10, 0);
	ck_assert_ptr_nonnull(mr);
	IS(ibv_dereg_mr(mr), 0);
	ck_assert_ptr_null(ibv_alloc_pd(one->verbs));
	IS(errno, ENOMEM);
	ck_assert_ptr_null(ibv_create_cq(one->verbs, 1, NULL, NULL, 0));
	IS(errno, ENOMEM);
	struct ibv_qp_init_attr init = { .send_cq = one->cq, .recv_cq = one->cq, .qp_type = IBV_QPT_RC };
	ck_assert_ptr_null(ibv_create_qp(one->pd, &init));
	IS(errno, ENOMEM);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_null(ibv_create_comp_channel(one->verbs));
	end_close(one);
}
END_TEST

START_TEST(operations_fail_by_number)
{
	struct ibv_wc none;
	struct ibv_sge sge;
	open_with("fail:post_send:2:EIO,fail:poll_cq:1,fail:req_notify_cq:1:EIO,fail:post_recv:1:EIO");
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(end_post(&end[0], &request), EIO);
	ck_assert_int_lt(ibv_poll_cq(end[0].cq, 1, &none), 0);
	IS(ibv_poll_cq(end[0].cq, 1, &none), 1);
	IS(ibv_req_notify_cq(end[0].cq, 0), EIO);
	IS(end_post_recv(&end[0], 1, 0, 8), EIO);
	ends_close(end);
}
END_TEST

START_TEST(registration_has_a_budget)
{
	setenv("HR_VERBS_DOUBLE_FAULT", "budget:70000:EPERM", 1);
	end_open(&end[0]); /* registers END_BYTES */
	ck_assert_ptr_null(ibv_reg_mr(end[0].pd, end[0].bytes, 5000, 0));
	IS(errno, EPERM);
	for (int i = 0; i < 3; i++) { /* what is given back is there again */
		struct ibv_mr *mr = ibv_reg_mr(end[0].pd, end[0].bytes, 4000, 0);
		ck_assert_ptr_nonnull(mr);
		IS(ibv_dereg_mr(mr), 0);
	}
	end_close(&end[0]);
}
END_TEST

START_TEST(a_receive_is_not_found)
{
	plan.rnr_retries = 7;
	open_with(_i ? "rnr:1:3" : "rnr:2:1");
	IS(end_post_recv(&end[1], 1, 0, 8), 0);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	IS(end_wait(&end[1]).status, IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(a_receive_is_not_found_until_the_sender_gives_up)
{
	plan.rnr_retries = 2;
	open_with("rnr:1:3");
	IS(end_post_recv(&end[1], 1, 0, 8), 0);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 8), IBV_WC_RNR_RETRY_EXC_ERR);
	ends_close(end);
}
END_TEST

START_TEST(a_completion_finds_its_queue_full)
{
	struct ibv_sge sge;
	open_with("overrun:2");
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(end_event(&end[0]), IBV_EVENT_CQ_ERR);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	ends_close(end);
}
END_TEST

START_TEST(the_port_goes_down)
{
	struct ibv_port_attr attr;
	open_with("port-down:2");
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_RETRY_EXC_ERR);
	IS(end_event(&end[0]), IBV_EVENT_PORT_ERR);
	IS(ibv_query_port(end[0].verbs, PORT, &attr), 0);
	IS(attr.state, IBV_PORT_DOWN);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[1], &end[0], 0, 8), IBV_WC_RETRY_EXC_ERR);
	ends_close(end);
}
END_TEST

/* Two connections between the ends; what is posted first, on the one that is held, is overtaken by the other. */
START_TEST(a_held_queue_pair_is_overtaken)
{
	struct ibv_sge sge[3];
	struct end other[2];
	open_with("hold:1:2");
	for (int i = 0; i < 2; i++) {
		other[i] = end[i];
		end_make_qp(&other[i]);
	}
	for (int i = 0; i < 2; i++)
		end_connect(&other[i], other[!i].qp->qp_num, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], i * 8, 8, &sge[i]);
		request.wr_id = i;
		IS(end_post(i ? &other[0] : &end[0], &request), 0);
	}
	IS(end_wait(&end[0]).wr_id, 1);
	IS(end_wait(&end[0]).wr_id, 2);
	IS(end_wait(&end[0]).wr_id, 0);
	for (int i = 0; i < 2; i++)
		IS(ibv_destroy_qp(other[i].qp), 0);
	ends_close(end);
}
END_TEST

START_TEST(a_held_request_goes_out_at_last)
{
	open_with("hold:1:1000000");
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

/* A child is killed at its second write; how much of that has arrived here is what was asked for. */
START_TEST(a_process_is_killed_at_each_step)
{
	static const struct { const char *fault; size_t arrived; } steps[] = {
		{ "kill:write:2:post", 0 }, { "kill:write:2:half", 25000 }, { "kill:write:2:done", 50000 },
	};
	int status;
	volatile uint32_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	end_open(&end[1]);
	pid_t child = fork();
	if (child == 0) {
		setenv("HR_VERBS_DOUBLE_FAULT", steps[_i].fault, 1);
		end_open(&end[0]);
		shared[0] = end[0].qp->qp_num;
		while (!shared[1])
			usleep(100);
		end_connect(&end[0], end[1].qp->qp_num, 1);
		memset(end[0].bytes, 1, END_BYTES);
		end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 60000, 8);
		end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 50000);
		_exit(0);
	}
	while (!shared[0])
		usleep(100);
	end_connect(&end[1], shared[0], 1);
	shared[1] = 1;
	IS(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	IS(end[1].bytes[60000], 1);
	for (size_t i = 0; i < 60000; i++)
		byte_is(end[1].bytes[i], i < steps[_i].arrived, i);
	munmap((void *)shared, 4096);
	end_close(&end[1]); /* and no lock is left taken */
}
END_TEST

START_TEST(what_cannot_be_understood_opens_nothing)
{
	static const char *const bad[] = { "explode", "error:write:1:sorry", "fail:reg_mr:x", "rnr:1", "hold:1:2:3",
					   "kill:write:2", "budget:", "error:write:1:fatal_err:1" };
	struct ibv_device **list = ibv_get_device_list(NULL);
	setenv("HR_VERBS_DOUBLE_FAULT", bad[_i], 1);
	ck_assert_ptr_null(ibv_open_device(list[0]));
	IS(errno, EINVAL);
	ibv_free_device_list(list);
}
END_TEST

TCase *rules_of_faults(void)
{
	TCase *made = tcase_create("faults");
	tcase_add_loop_test(made, the_nth_request_of_a_kind_fails, 0, N_STATUSES);
	tcase_add_test(made, calls_fail_by_number);
	tcase_add_test(made, operations_fail_by_number);
	tcase_add_test(made, registration_has_a_budget);
	tcase_add_loop_test(made, a_receive_is_not_found, 0, 2);
	tcase_add_test(made, a_receive_is_not_found_until_the_sender_gives_up);
	tcase_add_test(made, a_completion_finds_its_queue_full);
	tcase_add_test(made, the_port_goes_down);
	tcase_add_test(made, a_held_queue_pair_is_overtaken);
	tcase_add_test(made, a_held_request_goes_out_at_last);
	tcase_add_loop_test(made, a_process_is_killed_at_each_step, 0, 3);
	tcase_add_loop_test(made, what_cannot_be_understood_opens_nothing, 0, 8);
	return made;
}
