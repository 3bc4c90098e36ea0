/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kind of request does with bytes, and in which order. */
#include "test/ibverbs_double/ends.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct end end[2];

START_TEST(a_write_moves_just_its_bytes)
{
	ends_open(end);
	static const uint32_t lens[] = { 0, 1, 3, 4, 5, 8, 9, 63, 64, 65, 255, 256, 257, 4096, 40000 };
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		size_t offset = 1000 + i;
		memset(end[1].bytes, 0, END_BYTES);
		end_fill(&end[0], (unsigned)i);
		IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], offset, lens[i]), IBV_WC_SUCCESS);
		for (size_t at = 0; at < END_BYTES; at++)
			byte_is(end[1].bytes[at], at >= offset && at < offset + lens[i] ? pattern((unsigned)i, at) : 0,
				at);
	}
	ends_close(end);
}
END_TEST

START_TEST(a_read_fetches_just_its_bytes)
{
	ends_open(end);
	end_fill(&end[1], 5);
	IS(end_do(IBV_WR_RDMA_READ, &end[0], &end[1], 777, 30001), IBV_WC_SUCCESS);
	for (size_t at = 0; at < END_BYTES; at++)
		byte_is(end[0].bytes[at], at >= 777 && at < 777 + 30001 ? pattern(5, at) : 0, at);
	ends_close(end);
}
END_TEST

START_TEST(a_send_fills_the_receives_in_their_order)
{
	ends_open(end);
	end_fill(&end[0], 1);
	IS(end_post_recv(&end[1], 50, 0, 4096), 0);
	IS(end_post_recv(&end[1], 51, 8192, 4096), 0);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 0, 100), IBV_WC_SUCCESS);
	IS(end_do(IBV_WR_SEND, &end[0], &end[1], 8192, 4096), IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_wc got = end_wait(&end[1]);
		IS(got.status, IBV_WC_SUCCESS);
		IS(got.opcode, IBV_WC_RECV);
		IS(got.wr_id, 50 + i);
		IS(got.byte_len, i ? 4096 : 100);
		IS(got.qp_num, end[1].qp->qp_num);
	}
	for (size_t at = 0; at < END_BYTES; at++)
		byte_is(end[1].bytes[at], at < 100 || (at >= 8192 && at < 8192 + 4096) ? pattern(1, at) : 0, at);
	ends_close(end);
}
END_TEST

START_TEST(immediate_data_takes_a_receive)
{
	ends_open(end);
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM };
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge;
		struct ibv_send_wr request = end_request(kinds[i], &end[0], &end[1], 0, 8, &sge);
		request.imm_data = 0x12345678;
		IS(end_post_recv(&end[1], 3, 100, 8), 0);
		IS(end_post(&end[0], &request), 0);
		struct ibv_wc got = end_wait(&end[1]);
		IS(got.opcode, i ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		IS(got.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
		IS(got.imm_data, 0x12345678);
		IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	}
	ends_close(end);
}
END_TEST

START_TEST(vectors_are_gathered_and_scattered)
{
	ends_open(end);
	end_fill(&end[0], 9);
	struct ibv_sge from[3] = { { (uintptr_t)end[0].bytes + 5, 10, end[0].mr->lkey },
				   { (uintptr_t)end[0].bytes + 300, 0, 0 },
				   { (uintptr_t)end[0].bytes + 500, 1000, end[0].mr->lkey } };
	struct ibv_sge to[2] = { { (uintptr_t)end[1].bytes, 700, end[1].mr->lkey },
				 { (uintptr_t)end[1].bytes + 5000, 700, end[1].mr->lkey } };
	struct ibv_recv_wr recv = { .sg_list = to, .num_sge = 2 }, *bad_recv;
	struct ibv_send_wr request = { .sg_list = from, .num_sge = 3, .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED };
	IS(ibv_post_recv(end[1].qp, &recv, &bad_recv), 0);
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	IS(end_wait(&end[1]).byte_len, 1010);
	for (size_t i = 0; i < 1010; i++)
		IS(end[1].bytes[i < 700 ? i : 5000 + i - 700], pattern(9, i < 10 ? 5 + i : 500 + i - 10));
	ends_close(end);
}
END_TEST

START_TEST(atomics_return_the_old_value)
{
	ends_open(end);
	uint64_t *word = (uint64_t *)end[1].bytes, *old = (uint64_t *)end[0].bytes; /* calloc aligns them */
	struct ibv_sge sge;
	*word = 40;
	struct ibv_send_wr request = end_request(IBV_WR_ATOMIC_FETCH_AND_ADD, &end[0], &end[1], 0, 8, &sge);
	request.wr.atomic.compare_add = 2;
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).opcode, IBV_WC_FETCH_ADD);
	IS(*old, 40);
	IS(*word, 42);
	request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	for (int i = 0; i < 2; i++) { /* the first meets its value, the second does not */
		request.wr.atomic.compare_add = 42;
		request.wr.atomic.swap = 50 + (unsigned)i;
		IS(end_post(&end[0], &request), 0);
		IS(end_wait(&end[0]).opcode, IBV_WC_COMP_SWAP);
		IS(*old, i ? 50 : 42);
		IS(*word, 50);
	}
	ends_close(end);
}
END_TEST

START_TEST(inline_data_is_taken_at_once)
{
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "20000000", 1);
	ends_open(end);
	struct ibv_sge sge;
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 64, &sge);
	request.send_flags |= IBV_SEND_INLINE;
	sge.lkey = 0; /* is not looked at */
	memset(end[0].bytes, 1, 64);
	IS(end_post(&end[0], &request), 0);
	memset(end[0].bytes, 2, 64);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	IS(end[1].bytes[0], 1);
	IS(end[1].bytes[63], 1);
	sge.length = 65;
	IS(end_post(&end[0], &request), EINVAL);
	ends_close(end);
}
END_TEST

/* ---- order ---- */

enum { ROUNDS = 200, MESSAGE = 30000 };

static unsigned rounds_seen;

/* How many bytes from the first must have arrived when that one has: whole packets, and at the end by words. */
static size_t before(const volatile uint8_t *bytes, size_t at)
{
	if (at >= MESSAGE - 4)
		return MESSAGE - 4;
	if (at >= MESSAGE - 8)
		return MESSAGE - 8;
	size_t into = ((uintptr_t)bytes + at) % 256;
	return into < at ? at - into : 0;
}

/* Looks from the last byte to the first: once one is of round n, all before it must be. */
static void *watch(void *argument)
{
	const volatile uint8_t *bytes = argument;
	long bad = 0;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		size_t at;
		do {
			for (at = MESSAGE - 1; at > 0 && bytes[at] != (uint8_t)round; at--)
				;
			size_t end_of = bytes[at] == (uint8_t)round ? before(bytes, at) : 0;
			for (size_t i = 0; i < end_of; i++)
				bad += bytes[i] != (uint8_t)round;
		} while (at < MESSAGE - 1);
		__atomic_store_n(&rounds_seen, round, __ATOMIC_RELEASE); /* to the writer, which may go on */
	}
	return (void *)bad;
}

START_TEST(bytes_of_a_write_arrive_in_address_order)
{
	ends_open(end);
	pthread_t watcher;
	void *bad;
	IS(pthread_create(&watcher, NULL, watch, end[1].bytes), 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		memset(end[0].bytes, (int)round, MESSAGE);
		IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, MESSAGE), IBV_WC_SUCCESS);
		while (__atomic_load_n(&rounds_seen, __ATOMIC_ACQUIRE) != round)
			sched_yield();
	}
	IS(pthread_join(watcher, &bad), 0);
	IS((long)bad, 0);
	ends_close(end);
}
END_TEST

START_TEST(completions_are_in_the_order_of_posting)
{
	ends_open(end);
	struct ibv_sge sge[END_DEPTH];
	struct ibv_send_wr request[END_DEPTH];
	for (unsigned i = 0; i < END_DEPTH; i++) {
		request[i] = end_request(i % 3 == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &end[0], &end[1],
					 i * 1000, i % 2 ? 1000 : 1, &sge[i]);
		request[i].wr_id = i;
		request[i].next = i + 1 < END_DEPTH ? &request[i + 1] : NULL;
	}
	IS(end_post(&end[0], request), 0);
	for (unsigned i = 0; i < END_DEPTH; i++)
		IS(end_wait(&end[0]).wr_id, i);
	ends_close(end);
}
END_TEST

/* A read that takes its time, and behind it a write over what it fetches. */
static uint8_t read_then_write(unsigned flags)
{
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "1000000", 1);
	setenv("HR_VERBS_DOUBLE_RATE_MBPS", "2", 1);
	ends_open(end);
	struct ibv_sge sge[2];
	struct ibv_send_wr read = end_request(IBV_WR_RDMA_READ, &end[0], &end[1], 0, 60000, &sge[0]);
	struct ibv_send_wr write = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 59999, 1, &sge[1]);
	sge[1].addr = (uintptr_t)end[0].bytes + 60000;
	end[0].bytes[60000] = 2;
	end[1].bytes[59999] = 1;
	write.send_flags |= flags;
	read.next = &write;
	IS(end_post(&end[0], &read), 0);
	IS(end_wait(&end[0]).opcode, IBV_WC_RDMA_READ);
	IS(end_wait(&end[0]).opcode, IBV_WC_RDMA_WRITE);
	uint8_t seen = end[0].bytes[59999];
	ends_close(end);
	return seen;
}

START_TEST(a_write_may_overtake_a_read)
{
	IS(read_then_write(0), 2);
}
END_TEST

START_TEST(a_fence_keeps_it_behind)
{
	IS(read_then_write(IBV_SEND_FENCE), 1);
}
END_TEST

START_TEST(a_read_sees_the_writes_before_it)
{
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "300000", 1);
	ends_open(end);
	struct ibv_sge sge[2];
	struct ibv_send_wr write = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 1000, &sge[0]);
	struct ibv_send_wr read = end_request(IBV_WR_RDMA_READ, &end[0], &end[1], 0, 1000, &sge[1]);
	sge[1].addr += 2000;
	end_fill(&end[0], 4);
	write.next = &read;
	IS(end_post(&end[0], &write), 0);
	end_wait(&end[0]);
	end_wait(&end[0]);
	IS(memcmp(end[0].bytes, end[0].bytes + 2000, 1000), 0);
	ends_close(end);
}
END_TEST

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A GPU's memory is registered and read no faster than the model lets it. */
START_TEST(a_gpus_memory_takes_its_time)
{
	enum { BYTES = 20000 };
	char range[64];
	setenv("HR_VERBS_DOUBLE_GPU_RATE_MBPS", "2", 1);
	setenv("HR_VERBS_DOUBLE_GPU_REG_NS", "3000000", 1);
	setenv("HR_VERBS_DOUBLE_GPU_REG_NS_PER_MB", "400000000", 1);
	uint8_t *gpu = calloc(1, BYTES);
	snprintf(range, sizeof range, "%llx-%llx", (unsigned long long)(uintptr_t)gpu, (unsigned long long)(uintptr_t)gpu + BYTES);
	setenv("HR_VERBS_DOUBLE_GPU", range, 1);
	ends_open(end);
	uint64_t begin = now_ns();
	struct ibv_mr *mr = ibv_reg_mr(end[0].pd, gpu, BYTES, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_ptr_nonnull(mr);
	ck_assert_uint_ge(now_ns() - begin, 10000000); /* 3 ms, and 20,000 bytes at 400 ms for each MB */
	struct ibv_sge sge;
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, BYTES, &sge);
	sge.addr = (uintptr_t)gpu;
	sge.lkey = mr->lkey;
	begin = now_ns();
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	ck_assert_uint_ge(now_ns() - begin, 10000000);
	IS(ibv_dereg_mr(mr), 0);
	ends_close(end);
	free(gpu);
}
END_TEST

/* Only what cannot be: nothing is there before the model of time lets it. */
START_TEST(nothing_arrives_early)
{
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "2000000", 1);
	setenv("HR_VERBS_DOUBLE_RATE_MBPS", "10", 1);
	ends_open(end);
	struct ibv_sge sge;
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 50000, &sge);
	end[0].bytes[49999] = 1;
	uint64_t begin = now_ns();
	IS(end_post(&end[0], &request), 0);
	volatile uint8_t *last = &end[1].bytes[49999];
	while (!*last) /* without polling: the engine thread does it */
		;
	ck_assert_uint_ge(now_ns() - begin, 7000000);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	ck_assert_uint_ge(now_ns() - begin, 9000000);
	ends_close(end);
}
END_TEST

TCase *rules_of_data(void)
{
	TCase *made = tcase_create("data");
	tcase_add_test(made, a_write_moves_just_its_bytes);
	tcase_add_test(made, a_read_fetches_just_its_bytes);
	tcase_add_test(made, a_send_fills_the_receives_in_their_order);
	tcase_add_test(made, immediate_data_takes_a_receive);
	tcase_add_test(made, vectors_are_gathered_and_scattered);
	tcase_add_test(made, atomics_return_the_old_value);
	tcase_add_test(made, inline_data_is_taken_at_once);
	tcase_add_test(made, bytes_of_a_write_arrive_in_address_order);
	tcase_add_test(made, completions_are_in_the_order_of_posting);
	tcase_add_test(made, a_write_may_overtake_a_read);
	tcase_add_test(made, a_fence_keeps_it_behind);
	tcase_add_test(made, a_read_sees_the_writes_before_it);
	tcase_add_test(made, nothing_arrives_early);
	tcase_add_test(made, a_gpus_memory_takes_its_time);
	return made;
}
