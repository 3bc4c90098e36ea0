/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault injection of the libibverbs double. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct name {
	const char *text;
	unsigned value;
};

static const struct name kinds[] = {
	{ "write", VD_KIND_WRITE }, { "read", VD_KIND_READ }, { "send", VD_KIND_SEND },
	{ "atomic", VD_KIND_ATOMIC }, { "any", VD_KIND_ANY }, { NULL, 0 },
};

static const struct name calls[] = {
	{ "reg_mr", VD_CALL_REG_MR }, { "alloc_pd", VD_CALL_ALLOC_PD }, { "create_cq", VD_CALL_CREATE_CQ },
	{ "create_qp", VD_CALL_CREATE_QP }, { "create_comp_channel", VD_CALL_CREATE_COMP_CHANNEL },
	{ "open_device", VD_CALL_OPEN_DEVICE }, { "modify_qp", VD_CALL_MODIFY_QP },
	{ "post_send", VD_CALL_POST_SEND }, { "post_recv", VD_CALL_POST_RECV }, { "poll_cq", VD_CALL_POLL_CQ },
	{ "req_notify_cq", VD_CALL_REQ_NOTIFY_CQ }, { NULL, 0 },
};

static const struct name errors[] = {
	{ "ENOMEM", ENOMEM }, { "EPERM", EPERM }, { "EINVAL", EINVAL }, { "EAGAIN", EAGAIN }, { "EIO", EIO },
	{ "EFAULT", EFAULT }, { NULL, 0 },
};

static const struct name whens[] = {
	{ "post", VD_AT_POST }, { "half", VD_AT_HALF }, { "done", VD_WHEN_DONE }, { NULL, 0 },
};

static const struct name statuses[] = {
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
	{ "tm_rndv_incomplete", IBV_WC_TM_RNDV_INCOMPLETE }, { NULL, 0 },
};

/* ---- reading ---- */

static bool find(const struct name *names, const char *text, unsigned *value)
{
	for (; text && names->text; names++) {
		if (!strcmp(names->text, text)) {
			*value = names->value;
			return true;
		}
	}
	return false;
}

static bool number(const char *text, uint64_t *value, bool *plus)
{
	char *end;
	if (!text || *text < '0' || *text > '9')
		return false;
	*value = strtoull(text, &end, 10);
	if (plus && *end == '+') {
		*plus = true;
		end++;
	}
	return !*end;
}

static bool small_number(const char *text, unsigned *value)
{
	uint64_t wide;
	if (!number(text, &wide, NULL) || wide > 1000000)
		return false;
	*value = (unsigned)wide;
	return true;
}

/* word[0] is the fault's name; those not given are NULL. */
static bool read_one(char *const word[4], struct vd_fault *fault)
{
	const char *name = word[0];
	bool last = !word[3];
	if (!strcmp(name, "error")) {
		fault->type = VD_FAULT_ERROR;
		return find(kinds, word[1], &fault->what) && number(word[2], &fault->n, NULL) &&
		       find(statuses, word[3], &fault->how);
	}
	if (!strcmp(name, "kill")) {
		fault->type = VD_FAULT_KILL;
		return find(kinds, word[1], &fault->what) && number(word[2], &fault->n, NULL) &&
		       find(whens, word[3], &fault->how);
	}
	if (!strcmp(name, "fail")) {
		fault->type = VD_FAULT_CALL;
		fault->how = ENOMEM;
		return find(calls, word[1], &fault->what) && number(word[2], &fault->n, &fault->and_after) &&
		       (last || find(errors, word[3], &fault->how));
	}
	if (!strcmp(name, "hold")) {
		fault->type = VD_FAULT_HOLD;
		return small_number(word[1], &fault->what) && number(word[2], &fault->n, NULL) && last;
	}
	if (!strcmp(name, "rnr")) {
		fault->type = VD_FAULT_RNR;
		return number(word[1], &fault->n, NULL) && small_number(word[2], &fault->how) && last;
	}
	if (!strcmp(name, "budget")) {
		fault->type = VD_FAULT_BUDGET;
		fault->how = ENOMEM;
		return number(word[1], &fault->n, NULL) && last && (!word[2] || find(errors, word[2], &fault->how));
	}
	fault->type = !strcmp(name, "overrun") ? VD_FAULT_OVERRUN : VD_FAULT_PORT_DOWN;
	return (!strcmp(name, "overrun") || !strcmp(name, "port-down")) && number(word[1], &fault->n, NULL) &&
	       !word[2];
}

static bool read_text(char *text, struct vd_fault *fault)
{
	char *word[5] = { NULL }, *rest = text;
	for (unsigned i = 0; i < 5 && rest; i++)
		word[i] = strsep(&rest, ":");
	*fault = (struct vd_fault){ 0 };
	return !word[4] && read_one(word, fault);
}

int vd_fault_parse(struct vd_faults *faults, const char *text)
{
	*faults = (struct vd_faults){ 0 };
	char *copy = text && *text ? strdup(text) : NULL, *rest = copy;
	int error = text && *text && !copy ? ENOMEM : 0;
	while (rest && !error) {
		char whole[100], *one = strsep(&rest, ",");
		snprintf(whole, sizeof whole, "%s", one);
		if (faults->n == VD_FAULTS_MOST || !read_text(one, &faults->fault[faults->n++])) {
			fprintf(stderr, "verbs double: HR_VERBS_DOUBLE_FAULT: cannot do \"%s\"\n", whole);
			error = EINVAL;
		}
	}
	free(copy);
	return error;
}

/* ---- asking ---- */

static uint64_t count(uint64_t *counter)
{
	return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static bool hits(const struct vd_fault *fault, uint64_t n)
{
	return fault->n == n || (fault->and_after && n > fault->n);
}

static int take_bytes(struct vd_faults *faults, uint64_t bytes)
{
	uint64_t registered = __atomic_add_fetch(&faults->registered, bytes, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < faults->n; i++) {
		const struct vd_fault *fault = &faults->fault[i];
		if (fault->type == VD_FAULT_BUDGET && registered > fault->n) {
			__atomic_sub_fetch(&faults->registered, bytes, __ATOMIC_RELAXED);
			return (int)fault->how;
		}
	}
	return 0;
}

int vd_fault_call(struct vd_context *context, enum vd_call call, uint64_t bytes)
{
	struct vd_faults *faults = &context->faults;
	if (!faults->n)
		return 0;
	uint64_t n = count(&faults->calls[call]);
	for (unsigned i = 0; i < faults->n; i++) {
		const struct vd_fault *fault = &faults->fault[i];
		if (fault->type == VD_FAULT_CALL && fault->what == call && hits(fault, n))
			return (int)fault->how;
	}
	return call == VD_CALL_REG_MR ? take_bytes(faults, bytes) : 0;
}

void vd_fault_give_back(struct vd_context *context, uint64_t bytes)
{
	if (context->faults.n)
		__atomic_sub_fetch(&context->faults.registered, bytes, __ATOMIC_RELAXED);
}

static enum vd_kind kind_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return VD_KIND_WRITE;
	case IBV_WR_RDMA_READ:
		return VD_KIND_READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return VD_KIND_SEND;
	default:
		return VD_KIND_ATOMIC;
	}
}

static bool needs_recv(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void vd_fault_request(struct vd_context *context, enum ibv_wr_opcode opcode, struct vd_fault_plan *plan,
		      bool *port_down)
{
	struct vd_faults *faults = &context->faults;
	*plan = (struct vd_fault_plan){ IBV_WC_SUCCESS, VD_NEVER, 0 };
	*port_down = false;
	if (!faults->n)
		return;
	enum vd_kind kind = kind_of(opcode);
	uint64_t n[VD_KINDS] = { 0 };
	n[kind] = count(&faults->kinds[kind]);
	n[VD_KIND_ANY] = count(&faults->kinds[VD_KIND_ANY]);
	uint64_t receiving = needs_recv(opcode) ? count(&faults->needing_recv) : 0;
	for (unsigned i = 0; i < faults->n; i++) {
		const struct vd_fault *fault = &faults->fault[i];
		bool concerned = fault->type <= VD_FAULT_KILL && n[fault->what] == fault->n;
		if (concerned && fault->type == VD_FAULT_ERROR)
			plan->status = (enum ibv_wc_status)fault->how;
		else if (concerned)
			plan->kill = (enum vd_when)fault->how;
		else if (fault->type == VD_FAULT_RNR && receiving == fault->n)
			plan->rnr_times = fault->how;
		else if (fault->type == VD_FAULT_PORT_DOWN && n[VD_KIND_ANY] == fault->n)
			*port_down = true;
	}
}

bool vd_fault_overrun(struct vd_context *context)
{
	struct vd_faults *faults = &context->faults;
	if (!faults->n)
		return false;
	uint64_t n = count(&faults->completions);
	for (unsigned i = 0; i < faults->n; i++)
		if (faults->fault[i].type == VD_FAULT_OVERRUN && hits(&faults->fault[i], n))
			return true;
	return false;
}

uint64_t vd_fault_hold(const struct vd_context *context, uint32_t order)
{
	const struct vd_faults *faults = &context->faults;
	for (unsigned i = 0; i < faults->n; i++)
		if (faults->fault[i].type == VD_FAULT_HOLD && faults->fault[i].what == order)
			return faults->fault[i].n;
	return 0;
}

void vd_fault_kill(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}
