/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING,
};

/* ---- protection domains ---- */

VD_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *verbs)
{
	struct vd_context *context = vd_context_of(verbs);
	int error = vd_fault_call(context, VD_CALL_ALLOC_PD, 0);
	struct vd_pd *made = error ? NULL : calloc(1, sizeof *made);
	if (!made) {
		errno = error ? error : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&context->lock);
	made->pd = (struct ibv_pd){ verbs, ++context->next_pd };
	pthread_mutex_unlock(&context->lock);
	return &made->pd;
}

VD_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct vd_context *context = vd_context_of(pd->context);
	struct vd_pd *own = (struct vd_pd *)pd;
	pthread_mutex_lock(&context->lock);
	int error = own->users ? EBUSY : 0;
	pthread_mutex_unlock(&context->lock);
	if (!error)
		free(own);
	return error;
}

/* ---- memory regions ---- */

bool vd_mr_resolve(const struct vd_node *node, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t asked,
		   uint64_t *at)
{
	const struct vd_mr *mr = &node->mr[(key >> 8) % VD_MRS];
	if (!key || mr->key != key || mr->pd != pd || (mr->access & asked) != asked)
		return false;
	if (addr < mr->iova || addr - mr->iova > mr->len || len > mr->len - (addr - mr->iova))
		return false;
	*at = mr->addr + (addr - mr->iova);
	return true;
}

/* Is there memory in all of the range? A kernel that pins it would find out. */
static bool is_mapped(void *addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)addr / page * page, end = (uintptr_t)addr + len;
	unsigned char known[4096];
	while (begin < end) {
		size_t some = end - begin < sizeof known * page ? end - begin : sizeof known * page;
		if (mincore((void *)begin, some, known) < 0 && errno == ENOMEM)
			return false;
		begin += some;
	}
	return true;
}

/* A free place in the table. Index 0 is not used, so that no key is 0. */
static int find_place(struct vd_context *context, uint32_t *index)
{
	for (uint32_t i = 0; i < VD_MRS; i++) {
		*index = (context->next_mr + i) % VD_MRS;
		if (*index && !context->node->mr[*index].key) {
			context->next_mr = *index + 1;
			return 0;
		}
	}
	return ENOMEM;
}

static int check_registration(void *addr, size_t len, unsigned access)
{
	if (access & ~(unsigned)ACCESS_KNOWN)
		return EOPNOTSUPP;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (!len || (uintptr_t)addr + len < (uintptr_t)addr)
		return EINVAL;
	return is_mapped(addr, len) ? 0 : EFAULT;
}

static int register_region(struct vd_mr_own *made, uint64_t iova, unsigned access)
{
	struct ibv_mr *mr = &made->mr;
	struct vd_context *context = vd_context_of(mr->context);
	pthread_mutex_lock(&context->lock);
	int error = find_place(context, &made->index);
	if (!error) {
		struct vd_mr *shared = &context->node->mr[made->index];
		uint32_t count = ++context->mr_count % 256;
		mr->lkey = mr->rkey = made->index << 8 | count;
		mr->handle = made->index;
		vd_lock(&context->node->access);
		*shared = (struct vd_mr){ .key = mr->rkey, .pd = mr->pd->handle, .access = access, .iova = iova,
					  .len = mr->length, .addr = (uintptr_t)mr->addr };
		vd_unlock(&context->node->access);
		((struct vd_pd *)mr->pd)->users++;
	}
	pthread_mutex_unlock(&context->lock);
	return error;
}

/* The time that a registration of a GPU's memory takes in the model. */
static void spend(const struct vd_settings *set, const void *addr, size_t len)
{
	double ns = vd_is_gpu(set, (uintptr_t)addr) ? set->gpu_reg_ns + set->gpu_reg_ns_per_byte * (double)len : 0;
	struct timespec time = { .tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)(ns - 1e9 * (double)(time_t)(ns / 1e9)) };
	while (ns > 0 && nanosleep(&time, &time) && errno == EINTR)
		continue;
}

VD_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct vd_context *context = vd_context_of(pd->context);
	int error = vd_fault_call(context, VD_CALL_REG_MR, len);
	bool counted = !error;
	if (!error)
		error = check_registration(addr, len, access);
	struct vd_mr_own *made = error ? NULL : calloc(1, sizeof *made);
	if (!error && !made)
		error = ENOMEM;
	if (!error) {
		made->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = len };
		error = register_region(made, iova, access);
	}
	if (error) {
		if (counted)
			vd_fault_give_back(context, len);
		free(made);
		errno = error;
		return NULL;
	}
	spend(&context->set, addr, len);
	return &made->mr;
}

#undef ibv_reg_mr
VD_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
VD_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

VD_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vd_context *context = vd_context_of(mr->context);
	struct vd_mr_own *own = (struct vd_mr_own *)mr;
	pthread_mutex_lock(&context->lock);
	/* Peers move bytes under this lock: when it is ours, none is at it, and none will be. */
	vd_lock(&context->node->access);
	context->node->mr[own->index].key = 0;
	vd_unlock(&context->node->access);
	((struct vd_pd *)mr->pd)->users--;
	pthread_mutex_unlock(&context->lock);
	vd_fault_give_back(context, mr->length);
	free(own);
	return 0;
}

VD_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct vd_context *context = vd_context_of(mr->context);
	struct vd_mr_own *own = (struct vd_mr_own *)mr;
	struct vd_mr wanted = context->node->mr[own->index];
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !flags)
		return errno = EINVAL, IBV_REREG_MR_ERR_INPUT;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		wanted.addr = wanted.iova = (uintptr_t)addr;
		wanted.len = len;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		wanted.access = (uint32_t)access;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		wanted.pd = pd->handle;
	int error = check_registration((void *)(uintptr_t)wanted.addr, wanted.len, wanted.access);
	if (error)
		return errno = error, IBV_REREG_MR_ERR_INPUT;
	pthread_mutex_lock(&context->lock);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		((struct vd_pd *)mr->pd)->users--;
		((struct vd_pd *)pd)->users++;
		mr->pd = pd;
	}
	mr->addr = (void *)(uintptr_t)wanted.addr;
	mr->length = wanted.len;
	vd_lock(&context->node->access);
	context->node->mr[own->index] = wanted;
	vd_unlock(&context->node->access);
	pthread_mutex_unlock(&context->lock);
	return 0;
}
