/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the double has not: every call here fails with EOPNOTSUPP. The names in the second half are private between
 * libibverbs and its device drivers (rdma-core 34 and later); perftest is linked with two of these drivers, and the
 * dynamic linker wants to find all that they refer to.
 */
#include "test/ibverbs_double/double.h"

#include <errno.h>

static void *no_pointer(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static int no_error(void)
{
	return errno = EOPNOTSUPP;
}

/* ---- public ---- */

VD_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	return no_pointer(); /* unreliable datagrams only */
}

VD_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	(void)pd;
	(void)wc;
	(void)grh;
	(void)port;
	return no_pointer();
}

VD_EXPORT int ibv_init_ah_from_wc(struct ibv_context *verbs, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
				  struct ibv_ah_attr *attr)
{
	(void)verbs;
	(void)port;
	(void)wc;
	(void)grh;
	(void)attr;
	return no_error();
}

VD_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return no_error();
}

VD_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return no_error();
}

VD_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return no_error();
}

VD_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return no_error();
}

VD_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return no_error();
}

VD_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return no_pointer(); /* ibv_create_qp_ex with send operations is not here either */
}

VD_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
					   int access)
{
	(void)pd;
	(void)offset;
	(void)len;
	(void)iova;
	(void)fd;
	(void)access;
	return no_pointer();
}

VD_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return no_pointer();
}

VD_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *verbs, struct ibv_ah_attr *attr,
					  uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)verbs;
	(void)attr;
	(void)mac;
	(void)vid;
	return no_error();
}

/* Only what breaks the order is answered with 0; RDMA writes keep it (double_copy.c). */
VD_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
	(void)qp;
	return !flags && (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

/* ---- private ---- */

#define NO_ERROR(name)             \
	VD_EXPORT int name(void);  \
	VD_EXPORT int name(void)   \
	{                          \
		return no_error(); \
	}
#define NO_POINTER(name)             \
	VD_EXPORT void *name(void);  \
	VD_EXPORT void *name(void)   \
	{                            \
		return no_pointer(); \
	}

/* Drivers call this when they are loaded, and expect no answer. They get no devices. */
VD_EXPORT void verbs_register_driver_34(const void *operations);
VD_EXPORT void verbs_register_driver_34(const void *operations)
{
	(void)operations;
}

VD_EXPORT extern bool verbs_allow_disassociate_destroy;
VD_EXPORT bool verbs_allow_disassociate_destroy;

NO_POINTER(_verbs_init_and_alloc_context)
NO_POINTER(verbs_open_device)
NO_ERROR(__ioctl_final_num_attrs)
NO_ERROR(__verbs_log)
NO_ERROR(execute_ioctl)
NO_ERROR(verbs_init_cq)
NO_ERROR(verbs_set_ops)
NO_ERROR(verbs_uninit_context)
NO_ERROR(ibv_dontfork_range)
NO_ERROR(ibv_dofork_range)
NO_ERROR(ibv_copy_ah_attr_from_kern)
NO_ERROR(ibv_copy_path_rec_from_kern)
NO_ERROR(ibv_copy_path_rec_to_kern)
NO_ERROR(ibv_copy_qp_attr_from_kern)
NO_ERROR(ibv_cmd_advise_mr)
NO_ERROR(ibv_cmd_alloc_dm)
NO_ERROR(ibv_cmd_alloc_mw)
NO_ERROR(ibv_cmd_alloc_pd)
NO_ERROR(ibv_cmd_attach_mcast)
NO_ERROR(ibv_cmd_close_xrcd)
NO_ERROR(ibv_cmd_create_ah)
NO_ERROR(ibv_cmd_create_counters)
NO_ERROR(ibv_cmd_create_cq)
NO_ERROR(ibv_cmd_create_cq_ex)
NO_ERROR(ibv_cmd_create_flow)
NO_ERROR(ibv_cmd_create_flow_action_esp)
NO_ERROR(ibv_cmd_create_qp)
NO_ERROR(ibv_cmd_create_qp_ex)
NO_ERROR(ibv_cmd_create_qp_ex2)
NO_ERROR(ibv_cmd_create_rwq_ind_table)
NO_ERROR(ibv_cmd_create_srq)
NO_ERROR(ibv_cmd_create_srq_ex)
NO_ERROR(ibv_cmd_create_wq)
NO_ERROR(ibv_cmd_dealloc_mw)
NO_ERROR(ibv_cmd_dealloc_pd)
NO_ERROR(ibv_cmd_dereg_mr)
NO_ERROR(ibv_cmd_destroy_ah)
NO_ERROR(ibv_cmd_destroy_counters)
NO_ERROR(ibv_cmd_destroy_cq)
NO_ERROR(ibv_cmd_destroy_flow)
NO_ERROR(ibv_cmd_destroy_flow_action)
NO_ERROR(ibv_cmd_destroy_qp)
NO_ERROR(ibv_cmd_destroy_rwq_ind_table)
NO_ERROR(ibv_cmd_destroy_srq)
NO_ERROR(ibv_cmd_destroy_wq)
NO_ERROR(ibv_cmd_detach_mcast)
NO_ERROR(ibv_cmd_free_dm)
NO_ERROR(ibv_cmd_get_context)
NO_ERROR(ibv_cmd_modify_cq)
NO_ERROR(ibv_cmd_modify_flow_action_esp)
NO_ERROR(ibv_cmd_modify_qp)
NO_ERROR(ibv_cmd_modify_qp_ex)
NO_ERROR(ibv_cmd_modify_srq)
NO_ERROR(ibv_cmd_modify_wq)
NO_ERROR(ibv_cmd_open_qp)
NO_ERROR(ibv_cmd_open_xrcd)
NO_ERROR(ibv_cmd_poll_cq)
NO_ERROR(ibv_cmd_post_recv)
NO_ERROR(ibv_cmd_post_send)
NO_ERROR(ibv_cmd_post_srq_recv)
NO_ERROR(ibv_cmd_query_context)
NO_ERROR(ibv_cmd_query_device_any)
NO_ERROR(ibv_cmd_query_mr)
NO_ERROR(ibv_cmd_query_port)
NO_ERROR(ibv_cmd_query_qp)
NO_ERROR(ibv_cmd_query_srq)
NO_ERROR(ibv_cmd_read_counters)
NO_ERROR(ibv_cmd_reg_dm_mr)
NO_ERROR(ibv_cmd_reg_dmabuf_mr)
NO_ERROR(ibv_cmd_reg_mr)
NO_ERROR(ibv_cmd_req_notify_cq)
NO_ERROR(ibv_cmd_rereg_mr)
NO_ERROR(ibv_cmd_resize_cq)
