/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that the double injects. HR_VERBS_DOUBLE_FAULT is a list of faults, separated by commas. Each opened device
 * counts requests and calls for itself, from 1, in the order of the calls, so that a run can be repeated:
 *
 *	error:KIND:N:STATUS     the N-th request of KIND completes with STATUS, no byte of it reaches the peer, and its
 *	                        queue pair goes to the error state
 *	kill:KIND:N:WHEN        this process is killed at the N-th request of KIND. WHEN: post (nothing is sent), half
 *	                        (half of the bytes have arrived), done (all have arrived, but there is no completion)
 *	rnr:N:TIMES             the N-th request that needs a receive request finds none, TIMES times
 *	hold:QP:N               each request on the QP-th queue pair is carried out only after this device has carried
 *	                        out N requests on other queue pairs since it was posted, or after 256 attempts
 *	overrun:N               the N-th completion finds its completion queue full
 *	port-down:N             the port goes down when the N-th request (of any kind) is posted
 *	fail:CALL:N[:ERRNO]     the N-th call of CALL fails, with ENOMEM or the named error; N+: all from the N-th on
 *	budget:BYTES[:ERRNO]    ibv_reg_mr fails if more than BYTES would be registered
 *
 * KIND: write, read, send, atomic, any. STATUS: an enum ibv_wc_status in lower case without IBV_WC_, such as
 * rem_access_err. CALL: reg_mr, alloc_pd, create_cq, create_qp, create_comp_channel, open_device, modify_qp, post_send,
 * post_recv, poll_cq, req_notify_cq. ERRNO: ENOMEM, EPERM, EINVAL, EAGAIN, EIO, EFAULT. If the list is invalid,
 * ibv_open_device fails with EINVAL and prints the reason.
 */
#ifndef VERBS_DOUBLE_FAULT_H
#define VERBS_DOUBLE_FAULT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vd_context;

enum vd_kind { VD_KIND_WRITE, VD_KIND_READ, VD_KIND_SEND, VD_KIND_ATOMIC, VD_KIND_ANY, VD_KINDS };

enum vd_call {
	VD_CALL_REG_MR,
	VD_CALL_ALLOC_PD,
	VD_CALL_CREATE_CQ,
	VD_CALL_CREATE_QP,
	VD_CALL_CREATE_COMP_CHANNEL,
	VD_CALL_OPEN_DEVICE,
	VD_CALL_MODIFY_QP,
	VD_CALL_POST_SEND,
	VD_CALL_POST_RECV,
	VD_CALL_POLL_CQ,
	VD_CALL_REQ_NOTIFY_CQ,
	VD_CALLS,
};

enum vd_when { VD_NEVER, VD_AT_POST, VD_AT_HALF, VD_WHEN_DONE };

enum vd_fault_type {
	VD_FAULT_ERROR,
	VD_FAULT_KILL,
	VD_FAULT_RNR,
	VD_FAULT_HOLD,
	VD_FAULT_OVERRUN,
	VD_FAULT_PORT_DOWN,
	VD_FAULT_CALL,
	VD_FAULT_BUDGET,
};

/* One fault of the list. */
struct vd_fault {
	enum vd_fault_type type;
	unsigned what;   /* enum vd_kind or vd_call */
	uint64_t n;
	bool and_after;
	unsigned how;    /* status, enum vd_when, times, errno */
};

enum { VD_FAULTS_MOST = 16 };

/* The faults of one device. The counts are atomic; the other fields do not change after vd_fault_parse. */
struct vd_faults {
	unsigned n;
	struct vd_fault fault[VD_FAULTS_MOST];
	uint64_t kinds[VD_KINDS], calls[VD_CALLS];
	uint64_t needing_recv, completions, registered;
};

/* The faults of one request. */
struct vd_fault_plan {
	enum ibv_wc_status status; /* IBV_WC_SUCCESS: no error */
	enum vd_when kill;
	unsigned rnr_times;
};

/* Parses the list. Returns 0 or EINVAL. text may be NULL. */
int vd_fault_parse(struct vd_faults *faults, const char *text);
/* Call it once in each library call. bytes: of ibv_reg_mr. Returns 0, or the error with which the call must fail. */
int vd_fault_call(struct vd_context *context, enum vd_call call, uint64_t bytes);
/* Records that bytes are no longer registered. */
void vd_fault_give_back(struct vd_context *context, uint64_t bytes);
/* Call it once for each posted request. *port_down: the port must go down now. */
void vd_fault_request(struct vd_context *context, enum ibv_wr_opcode opcode, struct vd_fault_plan *plan,
		      bool *port_down);
/* Call it once for each completion. Returns whether its queue must look full. */
bool vd_fault_overrun(struct vd_context *context);
/* Returns for how many requests on other queue pairs a request on the order-th queue pair waits; 0: none. */
uint64_t vd_fault_hold(const struct vd_context *context, uint32_t order);
/* Ends this process at once. */
void vd_fault_kill(void);

#endif
