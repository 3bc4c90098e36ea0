/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices of the libibverbs double with a queue pair each, connected, in one process, for its own tests. */
#ifndef VERBS_ENDS_H
#define VERBS_ENDS_H

#include <check.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { END_BYTES = 1 << 16, END_DEPTH = 16, PORT = 1, GID_INDEX = 3 };

struct end {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* does not block */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *bytes; /* END_BYTES, with every access */
	struct ibv_mr *mr;
};

/* What connections are made with; a test may change it before ends_open. */
struct ends_plan {
	int depth, cqe;
	int access;      /* of the queue pairs */
	uint8_t timeout, retries, rnr_retries, rnr_timer;
	struct ibv_srq *srq;
	int sq_sig_all;
};
extern struct ends_plan plan;

#define IS(expression, expected) ck_assert_int_eq((long long)(expression), (long long)(expected))

/* For many bytes: each of check's assertions is a write to a file. */
static inline void byte_is(uint8_t byte, unsigned expected, size_t at)
{
	if (byte != expected)
		ck_abort_msg("byte %zu is %u, not %u", at, byte, expected);
}

void end_open(struct end *end);
/* Everything that end_open made, each call's result checked. */
void end_close(struct end *end);
void end_make_qp(struct end *end);
/* Takes the queue pair to RTS towards that one. psn: of both directions. */
void end_connect(struct end *end, uint32_t qp_num, uint32_t psn);
int end_to_init(struct end *end);
int end_to_rtr(struct end *end, uint32_t qp_num, uint32_t psn);
int end_to_rts(struct end *end, uint32_t psn);
/* Two ends, connected. */
void ends_open(struct end end[2]);
void ends_close(struct end end[2]);
enum ibv_qp_state end_state(const struct end *end);

/* A request of len bytes from offset of our bytes to the same of the other's. */
struct ibv_send_wr end_request(enum ibv_wr_opcode opcode, const struct end *from, const struct end *to, size_t offset,
			       uint32_t len, struct ibv_sge *sge);
int end_post(struct end *end, struct ibv_send_wr *request);
/* Makes it, posts it, and waits for its completion. */
enum ibv_wc_status end_do(enum ibv_wr_opcode opcode, struct end *from, struct end *to, size_t offset, uint32_t len);
int end_post_recv(struct end *end, uint64_t id, size_t offset, uint32_t len);
/* Waits for one completion. */
struct ibv_wc end_wait(struct end *end);
/* Waits until there is an asynchronous event, and takes it. */
enum ibv_event_type end_event(struct end *end);
/* Has the channel an event? Takes it. */
bool end_woken(struct end *end);
void end_fill(struct end *end, unsigned seed);
uint8_t pattern(unsigned seed, size_t offset);

TCase *rules_of_data(void);
TCase *rules_of_keys(void);
TCase *rules_of_queues(void);
TCase *rules_of_peers(void);
TCase *rules_of_faults(void);

#endif
