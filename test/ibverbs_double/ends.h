/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices of the libibverbs double in one process, each with a queue pair, connected; for the double's own
 * tests. */
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
	struct ibv_comp_channel *channel; /* non-blocking */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *bytes; /* END_BYTES, registered with all access flags */
	struct ibv_mr *mr;
};

/* The parameters of connections; a test may change them before ends_open. */
struct ends_plan {
	int depth, cqe;
	int access;      /* of the queue pairs */
	uint8_t timeout, retries, rnr_retries, rnr_timer;
	struct ibv_srq *srq;
	int sq_sig_all;
};
extern struct ends_plan plan;

#define IS(expression, expected) ck_assert_int_eq((long long)(expression), (long long)(expected))

/* Use this for many bytes: each assertion of check writes to a file. */
static inline void byte_is(uint8_t byte, unsigned expected, size_t at)
{
	if (byte != expected)
		ck_abort_msg("byte %zu is %u, not %u", at, byte, expected);
}

void end_open(struct end *end);
/* Destroys everything that end_open made, and checks the result of each call. */
void end_close(struct end *end);
void end_make_qp(struct end *end);
/* Connects the queue pair to queue pair qp_num (state RTS). psn: of both directions. */
void end_connect(struct end *end, uint32_t qp_num, uint32_t psn);
int end_to_init(struct end *end);
int end_to_rtr(struct end *end, uint32_t qp_num, uint32_t psn);
int end_to_rts(struct end *end, uint32_t psn);
/* Opens two connected ends. */
void ends_open(struct end end[2]);
void ends_close(struct end end[2]);
enum ibv_qp_state end_state(const struct end *end);

/* Returns a request for len bytes, at the same offset in both ends' bytes. */
struct ibv_send_wr end_request(enum ibv_wr_opcode opcode, const struct end *from, const struct end *to, size_t offset,
			       uint32_t len, struct ibv_sge *sge);
int end_post(struct end *end, struct ibv_send_wr *request);
/* Makes a request, posts it, and waits for its completion. */
enum ibv_wc_status end_do(enum ibv_wr_opcode opcode, struct end *from, struct end *to, size_t offset, uint32_t len);
int end_post_recv(struct end *end, uint64_t id, size_t offset, uint32_t len);
/* Waits for one completion. */
struct ibv_wc end_wait(struct end *end);
/* Waits for an asynchronous event, and takes it. */
enum ibv_event_type end_event(struct end *end);
/* Returns whether the completion channel has an event, and takes it. */
bool end_woken(struct end *end);
void end_fill(struct end *end, unsigned seed);
uint8_t pattern(unsigned seed, size_t offset);

TCase *rules_of_data(void);
TCase *rules_of_keys(void);
TCase *rules_of_queues(void);
TCase *rules_of_peers(void);
TCase *rules_of_faults(void);

#endif
