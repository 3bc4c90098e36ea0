#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs that end before their time: abort, a fatal error, a rank killed, a rank that leaves. Nothing hangs, the others
# learn of it, nothing stays behind.
# With a /dev/shm of its own, where the machine allows that: other tests make and delete files in the machine's.
if [ -z "${OWN_SHM:-}" ] && unshare --mount true 2>&-; then
	# shellcheck disable=SC2016 # the inner shell expands it
	OWN_SHM=yes exec unshare --mount bash -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' - bash "$0" "$@"
fi
. "$top_srcdir/test/adi/common.sh"
need_mpirun
ls /dev/shm >"$scratch/before"

expect_status() { # WANTED WAY
	SECONDS=0
	ranks 3 "$programs/ends" "$2" >"$scratch/out" 2>&1
	got=$?
	cat "$scratch/out"
	[ "$SECONDS" -lt 240 ] || fail "$2 hangs"
	case $1 in
	nonzero) [ "$got" -ne 0 ] ;;
	*) [ "$got" -eq "$1" ] ;;
	esac || fail "$2 ended with $got"
}

for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	expect_status 42 abort
	grep -q 'MPI_Abort(MPI_COMM_WORLD, 42) on rank 1 of 3' "$scratch/out" || fail "abort says who called it"
	expect_status nonzero fatal
	grep -q 'MPI_Send on rank 1 of 3, host [^ ]*: MPI_ERR_RANK: dest is 1000; valid: ranks from 0 to 2' "$scratch/out" ||
		fail "a fatal error says what was wrong"
	expect_status nonzero die
	# Left to themselves by mpirun, the others hear of the death from their own connections.
	for way in die leave; do
		timeout -k 5 300 "$MPIRUN" --enable-recovery -n 3 "$programs/ends" $way >"$scratch/out" 2>&1
		[ "$(grep -c 'told that rank 1 is gone' "$scratch/out")" -eq 2 ] || {
			cat "$scratch/out"
			fail "$way over $transport: the other ranks were not told"
		}
	done
done
ls /dev/shm >"$scratch/after"
diff "$scratch/before" "$scratch/after" | grep -i headrace && fail "left in /dev/shm"

# left: the processes of the jobs above that still run. Other tests start this program too, with another $scratch.
left() {
	local environment
	grep -lsz "^TMPDIR=$scratch\$" /proc/[0-9]*/environ | while read -r environment; do
		case $(readlink "${environment%environ}exe") in */ends | */lt-ends) echo "${environment%/environ}" ;; esac
	done
}
SECONDS=0
while [ -n "$(left)" ]; do
	[ "$SECONDS" -lt 60 ] || fail "processes are left: $(left)"
	sleep 0.1
done
exit 0
