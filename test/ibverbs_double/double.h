/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A double of libibverbs for tests: RDMA devices, simulated with shared memory and system calls, for the processes of
 * one user on one host. Programs load it instead of the real library by the library path
 * (with_double.sh); it has that library's symbols and versions, so they need not be rebuilt. It supports reliable
 * connections: RDMA write and read, send and receive, immediate data, atomics, shared receive queues, completion
 * channels, asynchronous events. Other calls fail with EOPNOTSUPP: other kinds of queue pairs, memory windows, extended
 * completion queues, and so on.
 *
 * How it works. Each opened device is a *node*: a file in HR_VERBS_DOUBLE_DIR that its process and all peers map
 * (struct vd_node). It has the tables of an adapter: memory regions, queue pairs, receive queues, completion queues. As
 * with an adapter, the target process takes no part in a request: the process that posts the request checks the
 * target's tables and moves the bytes with process_vm_writev or process_vm_readv. If a request is due at once, the call
 * that posts it carries it out; otherwise the process's next ibv_poll_cq does, or its engine thread if the process does
 * not poll. Requests are carried out in the order that an adapter keeps (double_engine.c).
 *
 * Properties of real hardware that protocols need, and that the double keeps: the bytes of one RDMA write become
 * visible in address order, the last byte last (double_copy.c); a request completes only when its bytes have arrived;
 * completions of one queue pair are in order; a slot of the send queue is free when the completion of that request or
 * of a later one has been polled.
 *
 * Environment variables, read when a device is opened:
 *	HR_VERBS_DOUBLE_DIR            directory of the nodes; default /dev/shm/hr-verbs-double-UID
 *	HR_VERBS_DOUBLE_LINK           roce (default) or infiniband
 *	HR_VERBS_DOUBLE_PORT           active (default), down, init or armed: all ports
 *	HR_VERBS_DOUBLE_DEVICES        number of devices, named double0 and so on; default 1, at most 4
 *	HR_VERBS_DOUBLE_PORTS          number of ports of each device; default 1, at most 2
 *	HR_VERBS_DOUBLE_DOWN           ports that are down, such as double0:2,double1:1
 *	HR_VERBS_DOUBLE_RAILS          1: each port is on a network of its own, which has only ports with that number of
 *	                               devices with that name
 *	HR_VERBS_DOUBLE_INLINE         largest inline data, bytes; default 256
 *	HR_VERBS_DOUBLE_RETRY_MS       time after which a silent peer has failed; default: from the queue pair's timeout
 *	                               and retry count, as with an adapter
 * Model of time; without these variables every request is carried out as fast as possible:
 *	HR_VERBS_DOUBLE_LATENCY_NS     from the end of sending to the arrival of the last byte, and the same for an
 *	                               acknowledgement
 *	HR_VERBS_DOUBLE_RATE_MBPS      send bandwidth of a node, 10^6 bytes per second
 *	HR_VERBS_DOUBLE_QP_RATE_MBPS   send bandwidth of one queue pair, 10^6 bytes per second
 *	HR_VERBS_DOUBLE_OVERHEAD_NS    time for which one request occupies the link, beside its bytes
 *	HR_VERBS_DOUBLE_GRACE_NS       if a process has been polling, the time for which the engine thread leaves due
 *	                               requests to it; default 200000. Pin each process to a core of its own to get
 *	                               exact latencies
 * Model of the memory of a GPU, which adapters read and write more slowly and register at a cost (GPUDirect RDMA):
 *	HR_VERBS_DOUBLE_GPU            its addresses in every process, BEGIN-END in hexadecimal, such as 100000000000-500000000000
 *	HR_VERBS_DOUBLE_GPU_RATE_MBPS  bandwidth of requests that read or write it, at either end, 10^6 bytes per second
 *	HR_VERBS_DOUBLE_GPU_REG_NS     time of a registration of it
 *	HR_VERBS_DOUBLE_GPU_REG_NS_PER_MB  in addition, for each megabyte
 * Faults, HR_VERBS_DOUBLE_FAULT: see double_fault.h.
 */
#ifndef VERBS_DOUBLE_H
#define VERBS_DOUBLE_H

#include "test/ibverbs_double/double_fault.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The functions of libibverbs. */
#define VD_EXPORT __attribute__((visibility("default")))

enum {
	VD_DEVICES = 4,
	VD_PORTS = 2, /* per device */
	VD_NODES = 1 << 10,
	VD_QPS = 1 << 14, /* per node; the number of a queue pair is node << 14 | index */
	VD_MRS = 1 << 16,
	VD_CQS = 1 << 14,
	VD_RQS = 1 << 15,
	VD_CQE_MAX = 1 << 20,
	VD_WR_MAX = 1 << 14,
	VD_SGE_MAX = 16,
	VD_READS_MAX = 16,
	VD_GIDS = 4,
	VD_PKEYS = 4,
	VD_ASYNCS = 256,
	VD_ARENA_BYTES = 1 << 28,
	VD_NOWHERE = -1,
};

/* ---- a node: memory that its process and its peers map ---- */

/* A memory region. Guarded by access. key 0: not in use. */
struct vd_mr {
	uint32_t key;    /* rkey and lkey: index << 8 | a count that makes a deregistered key invalid */
	uint32_t pd;
	uint32_t access; /* enum ibv_access_flags */
	uint64_t iova, len;
	uint64_t addr;   /* in the node's process */
};

struct vd_recv {
	uint64_t wr_id;
	uint32_t n_sge;
	struct ibv_sge sge[VD_SGE_MAX];
};

/* A receive queue, of a queue pair or shared. Guarded by access. */
struct vd_rq {
	uint64_t ring;       /* offset of struct vd_recv [size] */
	uint32_t size;       /* power of two */
	uint32_t max;        /* maximum number of requests in it */
	uint32_t head, tail; /* number of requests posted, consumed */
	uint32_t pd;
	uint32_t limit;      /* IBV_EVENT_SRQ_LIMIT_REACHED below it; 0: disarmed */
	uint64_t self;       /* address of the struct ibv_srq in the node's process, if it is shared */
};

struct vd_cqe {
	struct ibv_wc wc;
	uint32_t qp;  /* index */
	uint32_t end; /* of a send: the slots of the send queue before this number become free */
};

/* A completion queue. Guarded by its lock. */
struct vd_cq {
	pthread_mutex_t lock;
	uint64_t ring;       /* offset of struct vd_cqe [size] */
	uint32_t size;       /* power of two */
	uint32_t max;        /* maximum number of completions in it */
	uint32_t head, tail; /* number of completions pushed, polled */
	uint32_t armed;      /* 0: not armed; 1: for solicited completions only; 2: for any */
	uint32_t events;     /* on the channel, not taken yet */
	uint32_t overrun;
	int32_t event_fd;    /* of the channel, in the node's process; VD_NOWHERE: none */
	uint32_t event_id;   /* of the channel, unique in the node */
	uint64_t self;       /* address of the struct ibv_cq in the node's process */
};

/* A queue pair, as the peer's requests are checked against it. Guarded by access. */
struct vd_qp {
	uint32_t number;     /* 0: not in use */
	uint32_t state;      /* enum ibv_qp_state */
	uint32_t dest;
	uint32_t rq_psn, sq_psn;
	uint32_t access;
	uint32_t pd;
	uint32_t pkey;
	uint32_t port;
	uint32_t max_dest_rd_atomic;
	uint32_t rnr_timer;
	uint32_t rq;         /* index */
	uint32_t recv_cq;    /* index */
	uint32_t shared_rq;
	uint32_t established;
	uint64_t self;       /* address of the struct ibv_qp in the node's process */
};

struct vd_async {
	uint32_t type; /* enum ibv_event_type */
	uint64_t element;
};

/*
 * One opened device. The locks are shared between processes and robust. Order of locks: a context's lock, access of one
 * node at a time, the lock of one completion queue or of the asynchronous events.
 */
struct vd_node {
	uint64_t size; /* of the file; differs between builds of the double */
	pid_t pid;
	uint32_t id;
	uint32_t device;
	uint32_t port_state[VD_PORTS];
	pthread_mutex_t access; /* held by the owner to change the tables, by peers while they move bytes here */
	uint64_t link_free_ns;  /* time until which requests occupy this node's link; guarded by access */
	pthread_mutex_t async_lock;
	int32_t async_fd;
	uint32_t async_id;
	uint32_t async_head, async_tail;
	struct vd_async async[VD_ASYNCS];
	struct vd_qp qp[VD_QPS];
	struct vd_mr mr[VD_MRS];
	struct vd_cq cq[VD_CQS];
	struct vd_rq rq[VD_RQS];
	uint8_t arena[VD_ARENA_BYTES] __attribute__((aligned(64)));
};

/* ---- in one process ---- */

/* A peer's node, mapped. */
struct vd_peer {
	struct vd_peer *next;
	struct vd_node *node;
	dev_t dev;
	ino_t ino;
	unsigned users;
	struct vd_remote_fd *fds; /* descriptors of its channels, opened in this process */
};

enum { VD_ARENA_CLASSES = 32 };

struct vd_settings {
	const char *dir;
	bool infiniband, rails;
	unsigned ports;
	uint32_t port_state[VD_PORTS];
	uint32_t max_inline;
	uint64_t retry_ns; /* 0: from the queue pair's attributes */
	bool timed;        /* any of the next four fields is set, or gpu_ns_per_byte */
	uint64_t latency_ns, overhead_ns;
	double ns_per_byte, qp_ns_per_byte;
	uint64_t gpu_begin, gpu_end;
	double gpu_ns_per_byte, gpu_reg_ns, gpu_reg_ns_per_byte;
	uint64_t grace_ns; /* time for which the engine thread leaves due requests to a process that polls */
};

struct vd_context {
	struct vd_settings set;
	unsigned device;
	struct vd_faults faults;
	struct vd_node *node;
	int node_fd; /* has a file lock as long as this process lives */
	char dir[100], path[160];
	/* Guards everything below and the send queues; taken before any lock in a node. */
	pthread_mutex_t lock;
	struct vd_peer *peers;
	struct vd_qp_own *active; /* queue pairs with requests in progress */
	struct vd_qp_own *qp[VD_QPS];
	struct vd_channel *channels;
	uint32_t next_id; /* of channels */
	uint32_t next_pd;
	uint32_t next_mr, next_cq, next_rq, next_qp;
	uint32_t mr_count, qp_count;
	uint64_t arena_used;
	uint64_t arena_free[VD_ARENA_CLASSES]; /* offset + 1 of the first free block of that size */
	/* The engine thread, started when first needed. */
	bool engine_started, engine_stop;
	pthread_t engine;
	int timer_fd;
	uint64_t timer_ns;  /* when the timer expires; UINT64_MAX: not set */
	enum { VD_POSTING, VD_POLLING, VD_ENGINE } at_work; /* the code that is carrying out requests */
	unsigned late;      /* how often in succession the engine carried out requests that the process had left */
	uint64_t executed;  /* number of requests placed, on all queue pairs */
	uint64_t due_ns;    /* no request is due earlier; UINT64_MAX: none is; also read without the lock */
	struct verbs_context verbs; /* must be last: see struct verbs_context */
};

struct vd_pd {
	struct ibv_pd pd;
	uint32_t users; /* guarded by the context's lock */
};

struct vd_mr_own {
	struct ibv_mr mr;
	uint32_t index;
};

struct vd_channel {
	struct ibv_comp_channel channel;
	struct vd_channel *next;
	uint32_t id;
	struct vd_cq_own *cqs;
};

struct vd_cq_own {
	struct ibv_cq cq;
	uint32_t index;
	uint32_t users; /* queue pairs; guarded by the context's lock */
	uint32_t events_got, asyncs_got; /* to be acknowledged before ibv_destroy_cq returns */
	struct vd_cq_own *next; /* on the same channel */
};

struct vd_srq_own {
	struct ibv_srq srq;
	uint32_t index;
	uint32_t max_sge;
	uint32_t users;
	uint32_t asyncs_got;
};

/* One request in a send queue. */
struct vd_request {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t imm;
	uint64_t remote;
	uint32_t rkey;
	uint64_t compare_add, swap;
	uint32_t n_sge;
	struct ibv_sge sge[VD_SGE_MAX]; /* inline data: lkey is ignored */
	uint8_t *inline_data;
	struct vd_fault_plan plan;
	uint64_t len;
	uint64_t posted_ns;
	uint64_t begin_ns, arrive_ns; /* when the first byte is sent, when the last byte arrives */
	double byte_ns;               /* time for one byte */
	uint64_t done;                /* bytes moved */
	bool begun;                   /* has been checked against the target's tables, and has its receive request */
	bool placed;
	uint64_t elsewhere;           /* number of requests executed on other queue pairs when it was posted */
	unsigned looks;               /* attempts while it was held (fault "hold") */
	uint64_t again_ns, give_up_ns; /* no attempt before; when a silent peer has failed, 0: not silent yet */
	unsigned rnr_tries;
	enum ibv_wc_status status;
	uint32_t vendor;
	struct vd_recv recv;
};

struct vd_qp_own {
	struct ibv_qp_ex ex; /* ex.qp_base is what the caller has */
	uint32_t index;
	uint32_t order; /* number of the queue pair in this node, from 1, by creation */
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct vd_peer *peer;
	struct vd_request *request; /* [size] */
	uint8_t *inline_data;
	uint32_t size;      /* power of two */
	/* Numbers of requests, each at most the number before it: */
	uint32_t posted;
	uint32_t sent;      /* placed at the peer; reads are skipped */
	uint32_t read;      /* reads placed here; other requests are skipped */
	uint32_t completed;
	uint32_t reclaimed; /* their slots are free */
	uint32_t begun;     /* have their times in the model of time; between completed and posted */
	uint64_t begun_ns;  /* when the last of these begins */
	uint64_t free_ns;   /* time until which the queue pair is busy sending */
	uint64_t executed;  /* total number of requests placed */
	uint64_t reads_begun; /* total number of reads with a time */
	uint64_t read_arrive_ns[VD_READS_MAX]; /* arrival of the last of these reads */
	uint32_t asyncs_got;
	struct vd_qp_own *next_active, **active_link;
};

static inline struct vd_context *vd_context_of(struct ibv_context *context)
{
	return (struct vd_context *)((uint8_t *)context - offsetof(struct vd_context, verbs.context));
}

static inline struct vd_qp_own *vd_qp_of(struct ibv_qp *qp)
{
	return (struct vd_qp_own *)qp;
}

static inline struct vd_qp *vd_qp_shared(struct vd_context *context, const struct vd_qp_own *qp)
{
	return &context->node->qp[qp->index];
}

static inline uint32_t vd_qp_number(uint32_t node, uint32_t index)
{
	return node * VD_QPS + index;
}

/* ---- double_device.c ---- */

uint32_t vd_pkey(unsigned index);
/* Returns whether that path leads to that port of that device. */
bool vd_path_leads(const struct vd_context *context, const struct ibv_ah_attr *path, unsigned device, unsigned port);

/* ---- double_node.c: nodes ---- */

/* Returns 0 or an errno value, as all functions below that return int. */
int vd_node_open(struct vd_context *context);
void vd_node_close(struct vd_context *context);
/* Maps the node of the queue pair with that number. NULL: there is none. The caller holds the context's lock. */
struct vd_peer *vd_peer_get(struct vd_context *context, uint32_t qp_number);
void vd_peer_put(struct vd_context *context, struct vd_peer *peer);
/* Returns whether the node's process has ended or closed its device. Makes a system call. */
bool vd_peer_is_gone(struct vd_context *context, const struct vd_peer *peer);
/* Takes a shared lock, even if a process has died while it held the lock. */
void vd_lock(pthread_mutex_t *lock);
void vd_unlock(pthread_mutex_t *lock);
int vd_shared_lock_init(pthread_mutex_t *lock);
/* Allocates memory in this process's node. Returns its offset, 0 if there is none left. The caller holds the context's
 * lock. */
uint64_t vd_arena_take(struct vd_context *context, uint64_t bytes);
void vd_arena_give(struct vd_context *context, uint64_t offset, uint64_t bytes);
static inline void *vd_arena_at(struct vd_node *node, uint64_t offset)
{
	return node->arena + offset;
}
uint32_t vd_power_of_two(uint32_t at_least);

/* ---- double_events.c: channels and asynchronous events ---- */

/* Makes a descriptor of a node's process readable. peer is NULL for this process's node. */
void vd_signal(struct vd_peer *peer, int fd, uint32_t id);
/* A node, of this process (peer is NULL) or of a peer. */
struct vd_place {
	struct vd_context *by; /* the context that acts */
	struct vd_node *node;
	struct vd_peer *peer;
};
static inline struct vd_place vd_place_own(struct vd_context *context)
{
	return (struct vd_place){ context, context->node, NULL };
}
/* Closes the descriptors that vd_signal has opened for that peer. */
void vd_forget_fds(struct vd_peer *peer);
/* Removes events about an object that is being destroyed, if they were not taken yet. */
void vd_async_forget(struct vd_node *node, uint64_t element);
void vd_async_push(struct vd_place at, enum ibv_event_type type, uint64_t element);

/* ---- double_cq.c ---- */

/* Pushes a completion. False: the queue is full, and now in the error state. */
bool vd_cq_push(struct vd_place at, uint32_t cq, const struct vd_cqe *entry, bool solicited);
int vd_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int vd_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Removes a queue pair's completions from a queue. Called when the queue pair is reset or destroyed. */
void vd_cq_remove(struct vd_node *node, uint32_t cq, uint32_t qp);

/* ---- double_memory.c ---- */

/* Finds the memory of a key and an address: *at is its address in the node's process. asked: access flags that the
 * region must have; 0: none. The caller holds the node's access lock or, for local keys of this process, the context's
 * lock. */
bool vd_mr_resolve(const struct vd_node *node, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t asked,
		   uint64_t *at);

/* ---- double_copy.c ---- */

/* Moves a part of a transfer: the bytes from skip to skip + len of local, to or from the same bytes of remote in
 * process pid. ESRCH: the process is gone. EFAULT: memory is not mapped. EPERM: not permitted. */
int vd_copy(pid_t pid, const struct iovec *local, int n_local, const struct iovec *remote, int n_remote, uint64_t skip,
	    uint64_t len, bool write);
enum { VD_COPY_MOST = 1 << 16 };

/* ---- double_qp.c ---- */

/* Moves a queue pair of this process to the error state and flushes its queues. The caller holds the context's lock,
 * and no lock of a node. */
void vd_qp_fail_own(struct vd_context *context, struct vd_qp_own *qp);
/* Moves a queue pair to the error state in its node and flushes its receive queue. The caller holds access. */
void vd_qp_fail(struct vd_place at, struct vd_qp *qp);

/* ---- double_post.c ---- */

int vd_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vd_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- double_execute.c: one request ---- */

enum vd_result {
	VD_DONE,
	VD_WAIT,  /* call again at *due */
	VD_ERROR, /* request->status has the error */
};
/* Makes progress with a request. The caller holds the context's lock. */
enum vd_result vd_execute(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request, uint64_t now,
			  uint64_t *due);

/* ---- double_time.c ---- */

/* Returns whether that memory of any process is a GPU's, in the model. */
static inline bool vd_is_gpu(const struct vd_settings *set, uint64_t address)
{
	return address >= set->gpu_begin && address < set->gpu_end;
}

/* Sets the times of the requests that can begin by now. */
void vd_schedule(struct vd_context *context, uint64_t now);
/* Returns whether request i has no time yet. Then *due is the time of the next attempt. */
bool vd_is_waiting(const struct vd_context *context, struct vd_qp_own *qp, uint32_t i, uint64_t *due);

/* ---- double_engine.c: all requests ---- */

uint64_t vd_now(void);
/* Carries out the due requests, and makes the engine thread carry out the others in time. The caller holds the
 * context's lock. */
void vd_progress(struct vd_context *context);
/* As vd_progress, for a caller that polls. Cheap if no request is due or another thread is carrying them out. */
void vd_progress_hint(struct vd_context *context);
/* Leaves due requests to the engine thread at once, as the process will not poll for a while. */
void vd_progress_soon(struct vd_context *context);
void vd_qp_activate(struct vd_context *context, struct vd_qp_own *qp);
void vd_qp_deactivate(struct vd_qp_own *qp);
/* Completes all requests in the send queue with IBV_WC_WR_FLUSH_ERR, but the first with its own status if it has
 * one. */
void vd_flush_send_queue(struct vd_context *context, struct vd_qp_own *qp);
void vd_engine_stop(struct vd_context *context);

#endif
