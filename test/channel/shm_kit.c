/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the system whether one process may read another's memory, and forbids it to this process. */
#include "config.h"

#include "test/channel/shm_kit.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

bool may_read_siblings(void)
{
	static int word = 5;
	int ready[2], value = 0;
	pid_t child;
	if (pipe(ready) || (child = fork()) < 0)
		return false;
	if (child == 0) {
		pause();
		_exit(0);
	}
	struct iovec here = { &value, sizeof value }, there = { &word, sizeof word };
	bool allowed = process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof value && value == 5;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return allowed;
}

void forbid_copies(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof code / sizeof code[0], code };
	CHECK_IS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_IS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	uint8_t a = 1, b = 2;
	struct iovec here = { &a, 1 }, there = { &b, 1 };
	CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EPERM);
}
