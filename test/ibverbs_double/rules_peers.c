/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that do not answer, or not any more; addresses. */
#include "test/ibverbs_double/ends.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct end end[2];

/* ---- silence ---- */

static void expect_silence(void)
{
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_RETRY_EXC_ERR);
	IS(end_state(&end[0]), IBV_QPS_ERR);
	IS(end[1].bytes[0], 0);
	ends_close(end);
}

START_TEST(a_peer_not_yet_ready_is_silent)
{
	end_open(&end[0]);
	end_open(&end[1]);
	memset(end[0].bytes, 1, 8);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	IS(end_to_init(&end[1]), 0);
	expect_silence();
}
END_TEST

START_TEST(a_peer_that_gets_ready_in_time_is_heard)
{
	struct ibv_sge sge;
	plan.timeout = 20; /* four times four seconds */
	end_open(&end[0]);
	end_open(&end[1]);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8, &sge);
	IS(end_post(&end[0], &request), 0);
	end_connect(&end[1], end[0].qp->qp_num, 1);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

START_TEST(another_sequence_number_is_not_heard)
{
	end_open(&end[0]);
	end_open(&end[1]);
	memset(end[0].bytes, 1, 8);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	end_connect(&end[1], end[0].qp->qp_num, 2);
	expect_silence();
}
END_TEST

START_TEST(a_peer_connected_elsewhere_is_silent)
{
	end_open(&end[0]);
	end_open(&end[1]);
	memset(end[0].bytes, 1, 8);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	end_connect(&end[1], end[1].qp->qp_num, 1);
	expect_silence();
}
END_TEST

START_TEST(a_number_that_nobody_has_is_silent)
{
	end_open(&end[0]);
	end_open(&end[1]);
	memset(end[0].bytes, 1, 8);
	end_connect(&end[0], _i ? 0xfffff0 : end[1].qp->qp_num + 5, 1);
	end_connect(&end[1], end[0].qp->qp_num, 1);
	expect_silence();
}
END_TEST

START_TEST(a_destroyed_peer_is_silent)
{
	ends_open(end);
	memset(end[0].bytes, 1, 8);
	IS(ibv_destroy_qp(end[1].qp), 0);
	end_make_qp(&end[1]);
	expect_silence();
}
END_TEST

START_TEST(a_port_that_is_down_is_silent)
{
	struct ibv_port_attr attr;
	setenv("HR_VERBS_DOUBLE_PORT", "down", 1);
	end_open(&end[1]);
	setenv("HR_VERBS_DOUBLE_PORT", "active", 1);
	end_open(&end[0]);
	memset(end[0].bytes, 1, 8);
	IS(ibv_query_port(end[1].verbs, PORT, &attr), 0);
	IS(attr.state, IBV_PORT_DOWN);
	end_connect(&end[0], end[1].qp->qp_num, 1);
	end_connect(&end[1], end[0].qp->qp_num, 1);
	expect_silence();
}
END_TEST

static void to_init_with_pkey(struct end *one, uint16_t index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT, .pkey_index = index,
				    .qp_access_flags = (unsigned)plan.access };
	IS(ibv_modify_qp(one->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
}

START_TEST(partitions_do_not_hear_each_other)
{
	/* The default one, 1, and 2 as a limited member, who does not hear other limited ones. */
	static const struct { uint16_t index[2]; bool heard; } tried[] = {
		{ { 0, 0 }, true }, { { 1, 1 }, true }, { { 0, 1 }, false }, { { 2, 2 }, false },
	};
	memset(end, 0, sizeof end);
	for (int i = 0; i < 2; i++)
		end_open(&end[i]);
	for (int i = 0; i < 2; i++)
		to_init_with_pkey(&end[i], tried[_i].index[i]);
	for (int i = 0; i < 2; i++) {
		IS(end_to_rtr(&end[i], end[!i].qp->qp_num, 1), 0);
		IS(end_to_rts(&end[i], 1), 0);
	}
	memset(end[0].bytes, 1, 8);
	if (!tried[_i].heard)
		return expect_silence();
	IS(end_do(IBV_WR_RDMA_WRITE, &end[0], &end[1], 0, 8), IBV_WC_SUCCESS);
	ends_close(end);
}
END_TEST

/* ---- other processes ---- */

/* What two processes tell each other. */
struct word {
	uint32_t qp_num, rkey;
	uint64_t address;
};

static void swap(int fd, const struct end *own, struct word *theirs)
{
	struct word ours = { own->qp->qp_num, own->mr->rkey, (uintptr_t)own->bytes };
	ck_assert_int_eq(write(fd, &ours, sizeof ours), sizeof ours);
	ck_assert_int_eq(read(fd, theirs, sizeof *theirs), sizeof *theirs);
}

/* Runs child in another process, connected to end[0]; returns its id. *theirs: where its bytes are. */
static pid_t start(void (*child)(int fd), int *fd, struct word *theirs)
{
	int pair[2];
	IS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct word parents;
		close(pair[0]);
		end_open(&end[1]);
		swap(pair[1], &end[1], &parents);
		end_connect(&end[1], parents.qp_num, 1);
		ck_assert_int_eq(write(pair[1], "c", 1), 1);
		child(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*fd = pair[0];
	char connected;
	end_open(&end[0]);
	swap(*fd, &end[0], theirs);
	end_connect(&end[0], theirs->qp_num, 1);
	IS(read(*fd, &connected, 1), 1);
	return pid;
}

static struct ibv_send_wr to_child(const struct word *theirs, struct ibv_sge *sge)
{
	struct ibv_send_wr request = end_request(IBV_WR_RDMA_WRITE, &end[0], &end[0], 0, 5000, sge);
	request.wr.rdma.remote_addr = theirs->address;
	request.wr.rdma.rkey = theirs->rkey;
	return request;
}

static void until_closed(int fd)
{
	char last;
	while (read(fd, &last, 1) > 0)
		;
}

static void checks_what_arrives(int fd)
{
	until_closed(fd);
	for (size_t i = 0; i < END_BYTES; i++)
		if (end[1].bytes[i] != (i < 5000 ? pattern(2, i) : 0))
			_exit(1);
	end_close(&end[1]);
}

START_TEST(bytes_reach_another_process)
{
	struct word theirs;
	struct ibv_sge sge;
	int fd, status;
	pid_t child = start(checks_what_arrives, &fd, &theirs);
	end_fill(&end[0], 2);
	struct ibv_send_wr request = to_child(&theirs, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	close(fd);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	end_close(&end[0]);
}
END_TEST

static void sleeps_for_a_receive(int fd)
{
	struct ibv_wc got;
	struct ibv_cq *cq;
	void *context;
	IS(end_post_recv(&end[1], 8, 0, 5000), 0);
	IS(ibv_req_notify_cq(end[1].cq, 0), 0);
	ck_assert_int_eq(write(fd, "r", 1), 1);
	while (ibv_get_cq_event(end[1].channel, &cq, &context))
		usleep(100);
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(end[1].cq, 1, &got) != 1 || got.wr_id != 8 || end[1].bytes[4999] != pattern(2, 4999))
		_exit(1);
	end_close(&end[1]);
}

START_TEST(a_send_wakes_another_process)
{
	struct word theirs;
	struct ibv_sge sge;
	int fd, status;
	char ready;
	pid_t child = start(sleeps_for_a_receive, &fd, &theirs);
	end_fill(&end[0], 2);
	IS(read(fd, &ready, 1), 1);
	struct ibv_send_wr request = to_child(&theirs, &sge);
	request.opcode = IBV_WR_SEND;
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	close(fd);
	end_close(&end[0]);
}
END_TEST

START_TEST(a_dead_process_is_silent_and_its_node_is_used_again)
{
	struct word theirs, next;
	struct ibv_sge sge;
	int fd, next_fd, status;
	pid_t child = start(until_closed, &fd, &theirs);
	struct ibv_send_wr request = to_child(&theirs, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	IS(kill(child, SIGKILL), 0);
	IS(waitpid(child, &status, 0), child);
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_RETRY_EXC_ERR);
	close(fd);
	struct end first = end[0];
	child = start(checks_what_arrives, &next_fd, &next);
	/* By this process or by its new child. */
	ck_assert(next.qp_num >> 14 == theirs.qp_num >> 14 || end[0].qp->qp_num >> 14 == theirs.qp_num >> 14);
	end_fill(&end[0], 2);
	request = to_child(&next, &sge);
	IS(end_post(&end[0], &request), 0);
	IS(end_wait(&end[0]).status, IBV_WC_SUCCESS);
	close(next_fd);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	end_close(&end[0]);
	end_close(&first);
}
END_TEST

/* ---- addresses ---- */

START_TEST(a_roce_port_has_typed_addresses)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	end_open(&end[0]);
	IS(ibv_query_port(end[0].verbs, PORT, &attr), 0);
	IS(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	IS(attr.lid, 0);
	IS(ibv_query_port(end[0].verbs, 2, &attr), EINVAL);
	for (uint32_t i = 0; i < 4; i++) {
		IS(ibv_query_gid_ex(end[0].verbs, PORT, i, &entry, 0), 0);
		IS(entry.gid_type, i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
	}
	ck_assert_int_ne(ibv_query_gid_ex(end[0].verbs, PORT, 4, &entry, 0), 0);
	end_close(&end[0]);
}
END_TEST

START_TEST(each_port_of_each_device_has_an_address_of_its_own)
{
	enum { N = 4 };
	union ibv_gid gid[N];
	uint16_t lid[N];
	setenv("HR_VERBS_DOUBLE_LINK", "infiniband", 1);
	setenv("HR_VERBS_DOUBLE_DEVICES", "2", 1);
	setenv("HR_VERBS_DOUBLE_PORTS", "2", 1);
	setenv("HR_VERBS_DOUBLE_DOWN", "double1:2", 1);
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	IS(n, 2);
	for (int i = 0; i < N; i++) {
		struct ibv_port_attr attr;
		uint8_t port = (uint8_t)(1 + i % 2);
		struct ibv_context *verbs = ibv_open_device(list[i / 2]);
		ck_assert_ptr_nonnull(verbs);
		IS(ibv_query_port(verbs, port, &attr), 0);
		IS(attr.state, i == 3 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
		IS(ibv_query_port(verbs, 3, &attr), EINVAL);
		IS(ibv_query_gid(verbs, port, 0, &gid[i]), 0);
		lid[i] = attr.lid;
		for (int j = 0; j < i; j++)
			ck_assert(lid[j] != lid[i] && memcmp(&gid[j], &gid[i], sizeof gid[i]));
		IS(ibv_close_device(verbs), 0);
	}
	ibv_free_device_list(list);
}
END_TEST

START_TEST(an_infiniband_port_has_a_lid)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	setenv("HR_VERBS_DOUBLE_LINK", "infiniband", 1);
	end_open(&end[0]);
	IS(ibv_query_port(end[0].verbs, PORT, &attr), 0);
	IS(attr.link_layer, IBV_LINK_LAYER_INFINIBAND);
	ck_assert_int_ne(attr.lid, 0);
	IS(ibv_query_gid_ex(end[0].verbs, PORT, 0, &entry, 0), 0);
	IS(entry.gid_type, IBV_GID_TYPE_IB);
	end_close(&end[0]);
}
END_TEST

TCase *rules_of_peers(void)
{
	TCase *made = tcase_create("peers");
	tcase_add_test(made, a_peer_not_yet_ready_is_silent);
	tcase_add_test(made, a_peer_that_gets_ready_in_time_is_heard);
	tcase_add_test(made, another_sequence_number_is_not_heard);
	tcase_add_test(made, a_peer_connected_elsewhere_is_silent);
	tcase_add_loop_test(made, a_number_that_nobody_has_is_silent, 0, 2);
	tcase_add_test(made, a_destroyed_peer_is_silent);
	tcase_add_test(made, a_port_that_is_down_is_silent);
	tcase_add_loop_test(made, partitions_do_not_hear_each_other, 0, 4);
	tcase_add_test(made, bytes_reach_another_process);
	tcase_add_test(made, a_send_wakes_another_process);
	tcase_add_test(made, a_dead_process_is_silent_and_its_node_is_used_again);
	tcase_add_test(made, a_roce_port_has_typed_addresses);
	tcase_add_test(made, an_infiniband_port_has_a_lid);
	tcase_add_test(made, each_port_of_each_device_has_an_address_of_its_own);
	return made;
}
