/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a worker's system calls, by libseccomp. */
#define _GNU_SOURCE /* REG_RAX, CLONE_THREAD */
#include "cuda_remote/server/daemon/filter.h"

#include "cuda_remote/server/daemon/confine.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SYSCALLS_MAX 1024
#define USER_MODE_ONLY 1 /* UFFD_USER_MODE_ONLY of Linux 5.11; a system's headers may be older */
#define ARGUMENT_BITS 0xffffffffu /* the kernel looks at no more of a domain, a command or a signal */

/* Calls that a worker makes. A name that this architecture lacks is skipped. */
static const char *const allowed[] = {
	/* memory */
	"mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise", "brk", "mlock", "mlock2", "munlock", "mlockall",
	"munlockall", "msync", "mincore", "memfd_create", "membarrier", "mbind", "get_mempolicy", "set_mempolicy",
	"pkey_alloc", "pkey_free", "pkey_mprotect", "process_vm_readv", "process_vm_writev", "shmget", "shmat", "shmdt",
	"shmctl",
	/* files and descriptors */
	"open", "openat", "close", "close_range", "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv",
	"pwritev", "preadv2", "pwritev2", "lseek", "fstat", "stat", "lstat", "newfstatat", "fstatat64", "statx", "access",
	"faccessat", "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "fcntl", "fcntl64", "dup", "dup2",
	"dup3", "ftruncate", "fallocate", "fadvise64", "fsync", "fdatasync", "flock", "statfs", "fstatfs", "getcwd",
	"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "fchmod", "umask", "ioctl",
	"sendfile", "splice", "copy_file_range",
	/* events */
	"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
	"epoll_pwait2", "eventfd", "eventfd2", "pipe", "pipe2", "timerfd_create", "timerfd_settime", "timerfd_gettime",
	"signalfd", "signalfd4", "pidfd_open", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	/* sockets; socket itself is allowed for some domains, below */
	"socketpair", "bind", "connect", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg", "recvfrom",
	"recvmsg", "recvmmsg", "getsockopt", "setsockopt", "getsockname", "getpeername", "shutdown",
	/* threads and scheduling */
	"futex", "futex_waitv", "futex_wait", "futex_wake", "set_robust_list", "get_robust_list", "rseq",
	"set_tid_address", "gettid", "exit", "exit_group", "sched_yield", "sched_getaffinity", "sched_setaffinity",
	"sched_getparam", "sched_getscheduler", "sched_setscheduler", "sched_get_priority_max", "sched_get_priority_min",
	"getpriority", "setpriority", "getcpu", "arch_prctl", "set_thread_area", "get_thread_area",
	/* signals */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending", "rt_sigsuspend", "sigreturn",
	"sigaltstack", "restart_syscall", "pause", "alarm", "setitimer", "getitimer",
	/* time */
	"clock_gettime", "clock_getres", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "times", "timer_create",
	"timer_settime", "timer_gettime", "timer_delete",
	/* queries */
	"getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgrp",
	"getpgid", "getsid", "getrlimit", "ugetrlimit", "prlimit64", "getrusage", "sysinfo", "uname", "getrandom", "capget",
};

/* Calls that only an intruder makes. They end the process. */
static const char *const deadly[] = {
	"execve", "execveat", "ptrace", "pidfd_getfd", "mount", "umount2", "pivot_root", "chroot", "setns", "unshare",
	"open_by_handle_at", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "bpf",
	"reboot", "swapon", "swapoff", "keyctl", "add_key", "request_key", "iopl", "ioperm", "fsopen", "fsmount",
	"move_mount", "open_tree", "mount_setattr",
};

/* Calls that the C library and drivers try and can do without. They fail with this error and are not logged. */
static const struct {
	const char *name;
	int error;
} quiet[] = {
	{ "clone3", ENOSYS }, /* a filter cannot see its flags, which are in memory; the C library then uses clone */
	{ "io_uring_setup", ENOSYS }, { "perf_event_open", EPERM }, { "setrlimit", EPERM }, { "syslog", EPERM },
};

static const int domains[] = { AF_UNIX, AF_INET, AF_INET6 };
static const int netlinks[] = { NETLINK_ROUTE, NETLINK_RDMA }; /* network interfaces; InfiniBand devices */
static const int processes[] = { PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_GET_NO_NEW_PRIVS,
				 PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_VMA };

/* The filter as the kernel takes it; NULL: none. To generate it takes a millisecond, which a client need not wait for. */
static struct sock_fprog prepared;
static char *names[SYSCALLS_MAX];
static unsigned char told[SYSCALLS_MAX]; /* atomic */

bool filter_supported(void)
{
	return true;
}

/* ---- denied calls ---- */

static long *result_of(ucontext_t *context)
{
#if defined(__x86_64__)
	return (long *)&context->uc_mcontext.gregs[REG_RAX];
#elif defined(__aarch64__)
	return (long *)&context->uc_mcontext.regs[0];
#else
	(void)context;
	return NULL;
#endif
}

/* Handles SIGSYS: the kernel has not executed the call. Logs it, once for each number, and makes it fail with EPERM. */
static void on_denied(int signal, siginfo_t *info, void *context)
{
	int number = info->si_syscall, saved = errno;
	long *result = result_of(context);
	(void)signal;
	if (number < 0 || number >= SYSCALLS_MAX || !__atomic_test_and_set(&told[number], __ATOMIC_RELAXED)) {
		const char *name = number >= 0 && number < SYSCALLS_MAX ? names[number] : NULL;
		hr_log(HR_LOG_ERROR,
		       "worker: system call %s (number %d) denied; headraced --no-seccomp allows every system call",
		       name ? name : "of no known name", number);
	}
	if (!result)
		_exit(EXIT_FAILURE);
	*result = -EPERM;
	errno = saved;
}

static int catch_denied(void)
{
	struct sigaction action = { .sa_sigaction = on_denied, .sa_flags = SA_SIGINFO | SA_NODEFER };
	for (int i = 0; i < SYSCALLS_MAX; i++)
		names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i); /* a handler may not allocate */
	return sigaction(SIGSYS, &action, NULL) ? -errno : 0;
}

/* ---- rules ---- */

static int add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *arguments)
{
	int number = seccomp_syscall_resolve_name(name);
	if (number < 0) /* not on this architecture, or unknown to this libseccomp */
		return 0;
	return seccomp_rule_add_array(filter, action, number, n, arguments);
}

static int add_with(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned argument, uint64_t mask,
		    uint64_t value)
{
	struct scmp_arg_cmp comparison = SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value);
	return add(filter, action, name, 1, &comparison);
}

static int add_lists(scmp_filter_ctx filter)
{
	int error = 0;
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !error; i++)
		error = add(filter, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly && !error; i++)
		error = add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0, NULL);
	for (size_t i = 0; i < sizeof quiet / sizeof *quiet && !error; i++)
		error = add(filter, SCMP_ACT_ERRNO((unsigned)quiet[i].error), quiet[i].name, 0, NULL);
	return error;
}

/*
 * The channel's registration cache over verbs watches memory by userfaultfd with UFFD_USER_MODE_ONLY (ib/ib_memory.h).
 * Without this flag, which Linux before 5.11 does not have, a process could stop the kernel in the middle of an access to
 * user memory. Such a call fails; the channel then registers memory for each transfer.
 */
static int add_userfaultfd(scmp_filter_ctx filter)
{
	int error = add_with(filter, SCMP_ACT_ALLOW, "userfaultfd", 0, USER_MODE_ONLY, USER_MODE_ONLY);
	return error ? error : add_with(filter, SCMP_ACT_ERRNO(EPERM), "userfaultfd", 0, USER_MODE_ONLY, 0);
}

static int add_sockets(scmp_filter_ctx filter)
{
	int error = 0;
	for (size_t i = 0; i < sizeof domains / sizeof *domains && !error; i++)
		error = add_with(filter, SCMP_ACT_ALLOW, "socket", 0, ARGUMENT_BITS, (uint64_t)domains[i]);
	for (size_t i = 0; i < sizeof netlinks / sizeof *netlinks && !error; i++) {
		struct scmp_arg_cmp both[] = { SCMP_A0_64(SCMP_CMP_MASKED_EQ, ARGUMENT_BITS, AF_NETLINK),
					       SCMP_A2_64(SCMP_CMP_MASKED_EQ, ARGUMENT_BITS, (uint64_t)netlinks[i]) };
		error = add(filter, SCMP_ACT_ALLOW, "socket", 2, both);
	}
	return error;
}

/* Allows new threads, but no new processes; signals to this process; kill with signal 0 (does a process exist?). */
static int add_processes(scmp_filter_ctx filter)
{
	uint64_t self = (uint64_t)getpid();
	int error = add_with(filter, SCMP_ACT_ALLOW, "clone", 0, CLONE_THREAD, CLONE_THREAD);
	for (size_t i = 0; i < sizeof processes / sizeof *processes && !error; i++)
		error = add_with(filter, SCMP_ACT_ALLOW, "prctl", 0, ARGUMENT_BITS, (uint64_t)processes[i]);
	if (!error)
		error = add_with(filter, SCMP_ACT_ALLOW, "kill", 1, ARGUMENT_BITS, 0);
	if (!error)
		error = add_with(filter, SCMP_ACT_ALLOW, "tgkill", 0, ARGUMENT_BITS, self);
	if (!error)
		error = add_with(filter, SCMP_ACT_ALLOW, "rt_tgsigqueueinfo", 0, ARGUMENT_BITS, self);
	return error;
}

/* ---- the two filters ---- */

static scmp_filter_ctx start(uint32_t action)
{
	scmp_filter_ctx filter = seccomp_init(action);
	if (!filter)
		return NULL;
	/* For all threads, among them those that the driver has started. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
#if SCMP_VER_MAJOR > 2 || (SCMP_VER_MAJOR == 2 && SCMP_VER_MINOR >= 5)
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
#endif
	return filter;
}

static int failed(const char *what, int error)
{
	hr_log(HR_LOG_ERROR, "worker: cannot %s its filter of system calls: %s; headraced --no-seccomp does without", what,
	       strerror(-error));
	return error;
}

/* Generates the filter's program. */
static int generate(scmp_filter_ctx filter)
{
	struct stat file;
	int error = 0, fd = memfd_create("headrace-filter", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = seccomp_export_bpf(filter, fd);
	if (!error && fstat(fd, &file))
		error = -errno;
	if (error || file.st_size % (off_t)sizeof *prepared.filter || file.st_size / (off_t)sizeof *prepared.filter > USHRT_MAX) {
		close(fd);
		return error ? error : -EINVAL;
	}
	prepared.filter = malloc((size_t)file.st_size);
	prepared.len = (unsigned short)((size_t)file.st_size / sizeof *prepared.filter);
	if (!prepared.filter)
		error = -ENOMEM;
	else if (pread(fd, prepared.filter, (size_t)file.st_size, 0) != file.st_size)
		error = -EIO;
	close(fd);
	return error;
}

/* As seccomp_load does it, for all threads. The process has no new privileges already (confine). */
static int load_prepared(void)
{
	long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prepared);
	if (result < 0)
		return -errno;
	return result ? -ESRCH : 0; /* this thread could not be given the filter */
}

int filter_prepare(void)
{
	if (CONFINE_SANITIZED) {
		hr_log(HR_LOG_INFO, "worker: built with a sanitizer: no filter of system calls");
		return 0;
	}
	scmp_filter_ctx filter = start(SCMP_ACT_TRAP);
	int error = filter ? add_lists(filter) : -ENOMEM;
	if (!error)
		error = add_sockets(filter);
	if (!error)
		error = add_processes(filter);
	if (!error)
		error = add_userfaultfd(filter);
	if (!error)
		error = generate(filter);
	if (!error)
		error = catch_denied();
	seccomp_release(filter);
	return error ? failed("make", error) : 0;
}

/* Denies input into the daemon's terminal (TIOCSTI) and access to the memory of processes other than the client. */
static int add_targets(scmp_filter_ctx filter, pid_t reach)
{
	static const char *const remote[] = { "process_vm_readv", "process_vm_writev" };
	int error = add_with(filter, SCMP_ACT_KILL_PROCESS, "ioctl", 1, ARGUMENT_BITS, TIOCSTI);
	for (size_t i = 0; i < sizeof remote / sizeof *remote && !error && reach; i++) {
		struct scmp_arg_cmp other = SCMP_A0_64(SCMP_CMP_NE, (uint64_t)reach, 0);
		error = reach < 0 ? add(filter, SCMP_ACT_ERRNO(EPERM), remote[i], 0, NULL)
				  : add(filter, SCMP_ACT_ERRNO(EPERM), remote[i], 1, &other);
	}
	return error;
}

int filter_load(pid_t reach)
{
	if (!prepared.filter)
		return 0;
	/* The kernel runs every filter that was loaded and takes the strictest result. This one is loaded first, as the
	 * other does not allow the call that loads a filter. */
	scmp_filter_ctx targets = start(SCMP_ACT_ALLOW);
	int error = targets ? add_targets(targets, reach) : -ENOMEM;
	if (!error)
		error = seccomp_load(targets);
	if (!error)
		error = load_prepared();
	seccomp_release(targets);
	free(prepared.filter);
	prepared.filter = NULL;
	return error ? failed("load", error) : 0;
}
