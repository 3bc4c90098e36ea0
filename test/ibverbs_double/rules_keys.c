/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, bounds, access and protection domains: what is refused, by whom, and that nothing was touched. */
#include "test/ibverbs_double/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct end end[2];

static struct ibv_send_wr write_of(uint32_t len, struct ibv_sge *sge)
{
	return end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 100, len, sge);
}

/* Posts it; the target must refuse it with that status, tell its program, and both queue pairs must fail. */
static void refused(struct ibv_send_wr *request, enum ibv_wc_status status, enum ibv_event_type event)
{
	memset(end[0].bytes, 1, END_BYTES);
	IS(end_post(&end[0], request), 0);
	struct ibv_wc got = end_wait(&end[0]);
	ck_assert_str_eq(ibv_wc_status_str(got.status), ibv_wc_status_str(status));
	IS(got.wr_id, 7);
	IS(end_event(&end[1]), event);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	IS(end_state(&end[1]), IBV_QPS_ERR);
	for (size_t i = 0; i < END_BYTES; i++)
		byte_is(end[1].bytes[i], 0, i);
	ends_close(end);
}

static void access_refused(struct ibv_send_wr *request)
{
	refused(request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

START_TEST(a_wrong_key_is_refused)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(10, &sge);
	request.wr.rdma.rkey ^= _i ? 1u : 1u << 8; /* another count of it, or another region */
	access_refused(&request);
}
END_TEST

START_TEST(our_own_key_is_not_theirs)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(10, &sge);
	request.wr.rdma.rkey = end[0].mr->rkey;
	access_refused(&request);
}
END_TEST

START_TEST(bounds_are_kept_at_the_target)
{
	static const struct { long from_begin; uint32_t len; } outside[] = {
		{ -1, 1 }, { -1, 10 }, { END_BYTES - 9, 10 }, { END_BYTES, 1 }, { 1, END_BYTES }, { -4096, 5000 },
	};
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(outside[_i].len, &sge);
	sge.addr = (uintptr_t)end[0].bytes;
	request.wr.rdma.remote_addr = (uintptr_t)end[1].bytes + (uint64_t)outside[_i].from_begin;
	access_refused(&request);
}
END_TEST

START_TEST(the_last_byte_is_inside)
{
	ends_open(end);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], END_BYTES - 10, 10), IBV_WC_SUCCESS);
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, END_BYTES), IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(an_address_that_wraps_is_outside)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(100, &sge);
	request.wr.rdma.remote_addr = UINT64_MAX - 50;
	access_refused(&request);
}
END_TEST

static const struct { enum ibv_wr_opcode opcode; int access; } needs[] = {
	{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
};

static struct ibv_send_wr needing(int i, struct ibv_sge *sge)
{
	return end_request(needs[i].opcode, &end[0], &end[1], 64, 8, sge);
}

START_TEST(a_region_must_allow_the_access)
{
	struct ibv_sge sge;
	ends_open(end);
	IS(ibv_dereg_mr(end[1].mr), 0);
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	int access = all & ~needs[_i].access;
	end[1].mr = ibv_reg_mr(end[1].pd, end[1].bytes, END_BYTES, access);
	ck_assert_ptr_nonnull(end[1].mr);
	struct ibv_send_wr request = needing(_i, &sge);
	access_refused(&request);
}
END_TEST

START_TEST(a_queue_pair_must_allow_the_access)
{
	struct ibv_sge sge;
	plan.access &= ~needs[_i].access;
	ends_open(end);
	struct ibv_send_wr request = needing(_i, &sge);
	access_refused(&request);
}
END_TEST

START_TEST(another_domains_key_is_refused)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_pd *other = ibv_alloc_pd(end[1].verbs);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_mr *mr = ibv_reg_mr(other, end[1].bytes, END_BYTES, access);
	ck_assert_ptr_nonnull(mr);
	struct ibv_send_wr request = write_of(10, &sge);
	request.wr.rdma.rkey = mr->rkey;
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_REM_ACCESS_ERR);
	IS(end[1].bytes[100], 0);
	IS(ibv_dealloc_pd(other), EBUSY);
	IS(ibv_dereg_mr(mr), 0);
	IS(ibv_dealloc_pd(other), 0);
	ends_close(end);
}
END_TEST

START_TEST(a_deregistered_key_is_refused)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(10, &sge);
	IS(ibv_dereg_mr(end[1].mr), 0);
	end[1].mr = ibv_reg_mr(end[1].pd, end[1].bytes, END_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ck_assert_uint_ne(end[1].mr->rkey, request.wr.rdma.rkey);
	access_refused(&request);
}
END_TEST

START_TEST(the_key_of_an_empty_write_is_not_looked_at)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(0, &sge);
	request.wr.rdma.rkey = 0;
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(an_atomic_must_be_aligned)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = end_request(IBV_WR_ATOMIC_FETCH_AND_ADD, &end[0], &end[1], 4, 8, &sge);
	refused(&request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}
END_TEST

/* ---- our own side ---- */

static void fails_here(struct ibv_send_wr *request)
{
	IS(end_post(&end[0], request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_LOC_PROT_ERR);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	IS(end_state(&end[1]), IBV_QPS_RTS); /* it has seen nothing of it */
	ends_close(end);
}

START_TEST(a_wrong_local_key_fails_here)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(10, &sge);
	sge.lkey ^= 1;
	fails_here(&request);
}
END_TEST

START_TEST(local_bounds_are_kept)
{
	struct ibv_sge sge;
	ends_open(end);
	struct ibv_send_wr request = write_of(10, &sge);
	sge.addr = (uintptr_t)end[0].bytes + END_BYTES - 9;
	fails_here(&request);
}
END_TEST

START_TEST(a_read_needs_memory_that_may_be_written)
{
	struct ibv_sge sge;
	ends_open(end);
	IS(ibv_dereg_mr(end[0].mr), 0);
	end[0].mr = ibv_reg_mr(end[0].pd, end[0].bytes, END_BYTES, 0);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_READ, &end[0], &end[1], 0, 8, &sge);
	fails_here(&request);
}
END_TEST

START_TEST(memory_that_was_unmapped_fails_here)
{
	struct ibv_sge sge;
	ends_open(end);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(end[0].pd, memory, page, 0);
	ck_assert_ptr_nonnull(mr);
	IS(munmap(memory, page), 0);
	struct ibv_send_wr request = write_of(10, &sge);
	sge = (struct ibv_sge){ (uintptr_t)memory, 10, mr->lkey };
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_LOC_PROT_ERR);
	IS(ibv_dereg_mr(mr), 0);
	ends_close(end);
}
END_TEST

START_TEST(memory_that_is_not_there_is_not_registered)
{
	end_open(&end[0]);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(munmap(memory + page, page), 0);
	ck_assert_ptr_null(ibv_reg_mr(end[0].pd, memory, page + 1, 0));
	IS(errno, EFAULT);
	struct ibv_mr *mr = ibv_reg_mr(end[0].pd, memory, page, 0);
	ck_assert_ptr_nonnull(mr);
	ck_assert_ptr_null(ibv_reg_mr(end[0].pd, memory, page, IBV_ACCESS_REMOTE_WRITE));
	IS(errno, EINVAL); /* remote write asks for local write */
	IS(ibv_dereg_mr(mr), 0);
	munmap(memory, page);
	end_close(&end[0]);
}
END_TEST

/* ---- receives ---- */

START_TEST(a_receive_too_small_fails_at_both_ends)
{
	ends_open(end);
	IS(end_post_recv(&end[1], 9, 0, 99), 0);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 100), IBV_WC_REM_INV_REQ_ERR);
	struct ibv_wc got = end_wait(&end[1]);
	IS(got.status, IBV_WC_LOC_LEN_ERR);
	IS(got.wr_id, 9);
	IS(end_state(&end[1]), IBV_QPS_ERR);
	ends_close(end);
}
END_TEST

START_TEST(a_receive_with_a_wrong_key_fails_at_both_ends)
{
	ends_open(end);
	end[1].mr->lkey ^= 1;
	IS(end_post_recv(&end[1], 9, 0, 100), 0);
	end[1].mr->lkey ^= 1;
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 100), IBV_WC_REM_OP_ERR);
	IS(end_wait(&end[1]).status, IBV_WC_LOC_PROT_ERR);
	ends_close(end);
}
END_TEST

TCase *rules_of_keys(void)
{
	TCase *made = tcase_create("keys");
	tcase_add_loop_test(made, a_wrong_key_is_refused, 0, 2);
	tcase_add_test(made, our_own_key_is_not_theirs);
	tcase_add_loop_test(made, bounds_are_kept_at_the_target, 0, 6);
	tcase_add_test(made, the_last_byte_is_inside);
	tcase_add_test(made, an_address_that_wraps_is_outside);
	tcase_add_loop_test(made, a_region_must_allow_the_access, 0, 3);
	tcase_add_loop_test(made, a_queue_pair_must_allow_the_access, 0, 3);
	tcase_add_test(made, another_domains_key_is_refused);
	tcase_add_test(made, a_deregistered_key_is_refused);
	tcase_add_test(made, the_key_of_an_empty_write_is_not_looked_at);
	tcase_add_test(made, an_atomic_must_be_aligned);
	tcase_add_test(made, a_wrong_local_key_fails_here);
	tcase_add_test(made, local_bounds_are_kept);
	tcase_add_test(made, a_read_needs_memory_that_may_be_written);
	tcase_add_test(made, memory_that_was_unmapped_fails_here);
	tcase_add_test(made, memory_that_is_not_there_is_not_registered);
	tcase_add_test(made, a_receive_too_small_fails_at_both_ends);
	tcase_add_test(made, a_receive_with_a_wrong_key_fails_at_both_ends);
	return made;
}
