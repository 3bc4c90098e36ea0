#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What run.sh promises: exit statuses 0, 3 and death by a signal, stdout and stderr apart, a clean environment,
# an RDMA device, the time-out, and that nothing of it stays behind. Boots the machine four times, about 10 s each.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch

# check TEXT EXPECTED ACTUAL
check()
{
	[[ $2 == "$3" ]] && return
	printf 'selftest: %s: expected "%s", got "%s"\n' "$1" "$2" "$3" >&2
	failed=1
}

run()
{
	"$here/run.sh" --timeout 120 "$@"
}

export HEADRACE_SELFTEST='two words' OTHER_SELFTEST=not_passed_on
# Expanded in the guest.
# shellcheck disable=SC2016
out=$(run bash -c 'echo out; echo err >&2; echo "$HEADRACE_SELFTEST,${OTHER_SELFTEST:-}"; pwd; cat' 2>"$scratch/err")
status=$?
[[ $status = 77 ]] && { cat "$scratch/err" >&2; exit 77; }
check 'status of success' 0 "$status"
check 'stdout' $'out\ntwo words,\n'"$PWD" "$out"
check 'stderr' err "$(grep -v '^vm: unpacking' "$scratch/err")"

out=$(run bash -c 'echo x >test_of_read_only; ls /sys/class/infiniband; exit 3' 2>/dev/null)
check 'status 3' 3 $?
check 'RDMA device' rxe0 "$out"

# shellcheck disable=SC2016
run bash -c 'kill -SEGV $$' 2>/dev/null
check 'status of death by SIGSEGV' $((128 + 11)) $?

"$here/run.sh" --timeout 15 sleep 600 2>"$scratch/err"
check 'status after the time-out' 124 $?
check 'what it says of the time-out' 'vm: no end after 15 s: stopped' "$(cat "$scratch/err")"
rm -f "$scratch/err"
check 'what is left behind' '' "$(ls "$scratch")"
exit $failed
