#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check.sh [--all] [MODEL]: lets spin visit every state of each model, and demands that it finds an error in each mutation:
# a variant from which something was taken that is there for a reason. A model of tens of millions of states is visited
# again only if it or spin has changed since the visit that the file "visited" records, or with --all. Exit 77 without
# spin.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
all=
[ "${1:-}" != --all ] || { all=1; shift; }
only=${1:-}
command -v spin >/dev/null || { echo "spin is missing (Debian package spin)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0 failed=0

# shellcheck disable=SC2086 # the flags are words
# visit OPTIMISATION MODEL DEFINE...: prints what spin says; the verifier keeps to 4 GB of memory. -n: no list of
# unreached states.
visit() {
	local optimisation=$1 model=$2 flags="-DSAFETY -DCOLLAPSE"
	shift 2
	[ "$model" = single ] && flags+=" -DNOREDUCE" # its processes die: "unless", with which reduction is not valid
	(cd "$work" && rm -f pan* && spin -a "$@" "$here/$model.pml" &&
		${CC:-cc} "$optimisation" -w $flags -DMEMLIM=4000 -o pan pan.c && ./pan -n -m4000000) 2>&1
}

report() {
	checked=$((checked + 1))
	printf '%-10s %-58s %s\n' "$1" "${2//-D/}" "$3"
}

# holds MODEL DEFINE...: no error, and every state was visited.
holds() {
	local out states
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	out=$(visit -O2 "$@")
	states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' <<<"$out")
	if grep -q 'errors: 0$' <<<"$out" && ! grep -qE 'too small|error: |resource limit|out of memory|not completed' <<<"$out"; then
		report "$1" "${*:2}" "holds in all $states states"
	else
		report "$1" "${*:2}" FAILED
		tail -n 20 <<<"$out"
		failed=$((failed + 1))
	fi
}

# checksum MODEL DEFINE...: of the model without its comments, and of the version of spin.
checksum() {
	{ ${CC:-cc} -E -P -x c "${@:2}" "$here/$1.pml" | tr -s '[:space:]' ' ' && spin -V; } | sha256sum | cut -c1-64
}

# holds_long MODEL DEFINE...: as holds, unless "visited" has a line with the checksum of this model and the number of its states.
holds_long() {
	local sum states
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	sum=$(checksum "$@")
	states=$(sed -n "s/^$sum //p" "$here/visited")
	if [ -n "$states" ] && [ -z "$all" ]; then
		report "$1" "${*:2}" "held in all $states states; unchanged"
		return
	fi
	holds "$@"
	[ -n "$states" ] || echo "If it holds, test/model/visited should have the line: $sum STATES"
}

# breaks MODEL WHAT DEFINE...: spin finds an error: in an assertion, or ("stuck") a state from which nothing moves. The
# search ends at the first error, so compiling the verifier takes most of the time: it is not optimised.
breaks() {
	local out model=$1 what=$2
	[ -z "$only" ] || [ "$only" = "$model" ] || return 0
	shift 2
	out=$(visit -O0 "$model" "$@")
	if { [ "$what" = wrong ] && grep -q 'pan:1: assertion violated' <<<"$out"; } ||
		{ [ "$what" = stuck ] && grep -q 'pan:1: invalid end state' <<<"$out"; }; then
		report "$model" "$*" "found: $what"
	else
		report "$model" "$*" "FAILED: spin does not find the error ($what)"
		tail -n 20 <<<"$out"
		failed=$((failed + 1))
	fi
}

# ---- shared memory: with a fence on both sides, and with the sleeper's membarrier ----
holds shm
holds_long shm -DBOTH_HEAVY
breaks shm stuck -DM_NO_FENCE
breaks shm stuck -DBOTH_HEAVY -DM_NO_MEMBARRIER
breaks shm stuck -DM_NO_SECOND_LOOK
breaks shm stuck -DM_EVENTS_AFTER_ARMING
breaks shm stuck -DM_FLAG_BEFORE_DATA
breaks shm stuck -DM_NO_WAKE_FOR_ROOM
breaks shm stuck -DM_LATE_TAIL
breaks shm wrong -DM_EARLY_TAIL
breaks shm wrong -DM_NO_ZERO
breaks shm wrong -DM_NO_NOTE
breaks shm wrong -DM_NO_POSITION
breaks shm wrong -DM_NO_SFENCE
breaks shm wrong -DM_NO_SPARE_LINE

# ---- going back to the start of the ring ----
holds back
breaks back wrong -DM_OLD_HEADERS
breaks back wrong -DM_MARK_EACH
breaks back wrong -DM_EARLY_ECHO
breaks back wrong -DM_OLD_MARK
breaks back wrong -DM_GAP_WITHOUT_ROOM
breaks back wrong -DM_TURN_WITHOUT_ROOM

# ---- single copy over shared memory: copying; sleeping, with store buffers; failures; closing and dying ----
sleep="-DUNITS=2 -DSLEEP -DSTORES=1 -DNUMBERS=3"
holds single
breaks single wrong -DM_PUSHED_STAYS
breaks single wrong -DM_ANSWER_STAYS
breaks single wrong -DM_PUSHED_WITHOUT_GENERATION
breaks single wrong -DM_PUSHED_BEFORE_WRITE
breaks single wrong -DM_NOT_SETTLED
breaks single wrong -DM_NO_KEEP
breaks single wrong -DM_FIRST_UNIT_IS_OPEN
breaks single wrong -DM_LEFT_FROM_GRANT
breaks single wrong -DM_CLAIMS_BEFORE_GRANT
breaks single wrong -DM_ANSWER_FIRST
breaks single wrong -DM_TAKE_BACK_BY_STORE
breaks single wrong -DM_TAKE_UP_BY_STORE
holds single -DUNITS=4 -DHALVES
breaks single wrong -DUNITS=4 -DHALVES -DM_NO_GENERATION_IN_CLAIMS
# shellcheck disable=SC2086 # the settings are words
{
	holds single $sleep
	breaks single stuck $sleep -DM_NO_FENCE
	breaks single stuck -DUNITS=2 -DSLEEP -DM_NO_SECOND_LOOK
	breaks single stuck -DUNITS=2 -DSLEEP -DM_NO_WAKE_FOR_ANSWER
}
holds single -DFAILURES
breaks single stuck -DFAILURES -DM_FAILURE_NOT_TOLD
breaks single wrong -DFAILURES -DM_FAILED_NOT_PULLED
holds single -DCLOSES
holds single -DDEATHS
breaks single wrong -DCLOSES -DM_NO_REVOKE
breaks single wrong -DCLOSES -DM_REVOKED_LOOK_FIRST
breaks single wrong -DCLOSES -DM_CLOSE_WITHOUT_WITHDRAWING
breaks single stuck -DCLOSES -DDEATHS -DM_CLOSE_WAITS_FOR_THE_DEAD
breaks single wrong -DCLOSES -DTIMEOUT # the known weakness, docs/KNOWN_ISSUES.md

# ---- several offers of single copy under way ----
holds several
holds several -DCLOSES
breaks several wrong -DM_ANSWER_STAYS
breaks several stuck -DM_NUMBERS_AGAIN
breaks several wrong -DM_REST_STAYS_SENT
breaks several wrong -DM_COUNT_IN_EVERY_ANSWER
breaks several stuck -DM_WORD_STAYS
breaks several wrong -DM_TAKE_BACK_BY_STORE
breaks several stuck -DM_NO_RESTART
breaks several stuck -DM_ACCEPTED_BEHIND_AN_OFFER
breaks several wrong -DM_ANSWER_FIRST
breaks several wrong -DM_DROPS_NOTHING
breaks several wrong -DM_ANSWER_BEFORE_COPY
breaks several wrong -DCLOSES -DM_NO_REVOKE
breaks several wrong -DCLOSES -DM_GOES_ON_AFTER_THE_END

# ---- verbs: the ring, over two queue pairs ----
holds verbs -DSIDE_1_PUTS=0
holds verbs -DSIDE_1_PUTS=1 -DPUT_ONLY
breaks verbs wrong -DSIDE_1_PUTS=0 -DM_FRONT_FLAG_ONLY
breaks verbs wrong -DSIDE_1_PUTS=0 -DM_TAIL_BEFORE_COPY
breaks verbs stuck -DSIDE_1_PUTS=0 -DM_NO_TAIL_ALONE
few="-DQPS=1 -DDEPTH=1 -DSIDE_0_PUTS=3 -DSIDE_1_PUTS=3"
four="-DCHUNKS=4 -DCOUNTS=32 -DQPS=1 -DDEPTH=1 -DSIDE_0_PUTS=5 -DSIDE_1_PUTS=4 -DPUT_ONLY"
# shellcheck disable=SC2086 # the settings are words
{
	holds verbs $few
	breaks verbs stuck $few -DM_TAIL_NEEDS_CREDIT
	holds verbs $four
	breaks verbs stuck $four -DM_NO_PEEK
}
breaks verbs wrong -DSIDE_1_PUTS=1 -DM_TAIL_TWICE
breaks verbs wrong -DSIDE_1_PUTS=1 -DPUT_ONLY -DM_PEEK_ONLY_WITHOUT_ROOM

# ---- verbs: the receiver sleeps for data, the sender for room ----
data="-DSLEEP -DCOUNTS=8 -DQPS=1 -DDEPTH=1 -DSIDE_0_PUTS=2 -DSIDE_1_PUTS=0 -DSLEEPER=1"
room="-DSLEEP -DCOUNTS=8 -DQPS=1 -DDEPTH=1 -DSIDE_0_PUTS=3 -DSIDE_1_PUTS=0 -DSLEEPER=0"
# shellcheck disable=SC2086 # the settings are words
{
	holds verbs $data
	holds verbs $room
	breaks verbs stuck $data -DM_NO_FENCE
	breaks verbs stuck $data -DM_PROGRESS_AFTER_LOOK
	breaks verbs stuck $data -DM_NO_PROBE
	breaks verbs stuck $data -DM_PROBE_FIRST
	breaks verbs stuck ${data/QPS=1/QPS=2} -DM_PROBE_ON_ANOTHER_QP
	breaks verbs stuck $data -DM_PROMISE_IGNORED
	breaks verbs stuck $data -DM_NOTIFY_AFTER_LOOK
	breaks verbs stuck $data -DM_NO_SECOND_LOOK
	breaks verbs stuck $room -DM_TAIL_WAKES_NOBODY
}

# ---- zero-copy ----
holds zerocopy
breaks zerocopy wrong -DM_ACK_BEFORE_READ
breaks zerocopy wrong -DM_ACK_OUT_OF_ORDER
breaks zerocopy wrong -DM_ACCEPTED_WHEN_SENT
breaks zerocopy wrong -DM_DELIVERED_BEFORE_READ
breaks zerocopy stuck -DM_NO_BOUNCE

echo "$checked checked, $failed failed"
[ "$failed" = 0 ]
