#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What run.sh promises: the exit status, stdout and stderr apart, a clean environment, an RDMA device, and that nothing
# of it stays behind. With HEADRACE_TEST_LONG=1 also the status after death by a signal, and the time-out. Boots the
# machine once, with HEADRACE_TEST_LONG=1 three times, about 10 s each.
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
out=$(run bash -c 'echo out; echo err >&2; echo "$HEADRACE_SELFTEST,${OTHER_SELFTEST:-}"; pwd; cat
	{ echo x >test_of_read_only; } 2>/dev/null; ls /sys/class/infiniband; exit 3' 2>"$scratch/err")
status=$?
[[ $status = 77 ]] && { cat "$scratch/err" >&2; exit 77; }
check 'status 3' 3 "$status"
check 'stdout and RDMA device' $'out\ntwo words,\n'"$PWD"$'\nrxe0' "$out"
check 'stderr' err "$(grep -v '^vm: unpacking' "$scratch/err")"
check 'root file system is read-only' '' "$(ls test_of_read_only 2>/dev/null)"

if [[ ${HEADRACE_TEST_LONG:-} ]]; then
	# shellcheck disable=SC2016
	run bash -c 'kill -SEGV $$' 2>/dev/null
	check 'status of death by SIGSEGV' $((128 + 11)) $?

	"$here/run.sh" --timeout 15 sleep 600 2>"$scratch/err"
	check 'status after the time-out' 124 $?
	check 'what it says of the time-out' 'vm: no end after 15 s: stopped' "$(cat "$scratch/err")"
fi
rm -f "$scratch/err"
check 'what is left behind' '' "$(ls "$scratch")"
exit $failed
