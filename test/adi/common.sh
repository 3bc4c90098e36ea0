# SPDX-License-Identifier: BSD-3-Clause
# For the MPI tests, sourced: starting programs as ranks, and cleaning up.
programs=$top_builddir/test/adi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI's session directories, where nothing else of the machine interferes.
export TMPDIR=$scratch

# In a sanitizer build: libpmix and what it loads keep some bytes for themselves.
printf 'leak:libpmix\nleak:pmix_mca\nleak:libevent\nleak:libhwloc\n' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
# Every rank has these leaks, and reading the debug information to print them would take a quarter of a test's time. A report
# then has offsets in the libraries; run the test with ASAN_OPTIONS=symbolize=1, and it has functions and lines.
export ASAN_OPTIONS=symbolize=0:${ASAN_OPTIONS:-}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

need_mpirun() {
	if [ -z "$MPIRUN" ] || ! command -v "$MPIRUN" >/dev/null; then
		echo "skipped: mpirun of Open MPI is missing"
		exit 77
	fi
	if ! grep -q 'define HAVE_PMIX 1' "$top_builddir/config.h"; then
		echo "skipped: this build has no PMIx, so its programs run as one process only"
		exit 77
	fi
}

# ranks N PROGRAM [ARGUMENT...]: runs it with N ranks, for at most ranks_limit seconds, 300 by default. A rank that waits yields
# its processor to all other programs, so on a loaded machine a program with many barriers takes minutes.
ranks() {
	n=$1
	shift
	timeout -k 5 "${ranks_limit:-300}" "$MPIRUN" -n "$n" "$@"
}

# with_ranks "N..." PROGRAM [ARGUMENT...]: a test program over shared memory with each number of ranks, then over tcp with three.
with_ranks() {
	local counts=$1 program=$programs/$2 n
	shift 2
	for n in $counts; do
		HEADRACE_TRANSPORT=shm ranks "$n" "$program" "$@" || fail "$program $*, $n ranks, shm"
	done
	HEADRACE_TRANSPORT=tcp ranks 3 "$program" "$@" || fail "$program $*, 3 ranks, tcp"
}

# Everything that two and four ranks must do over one transport.
whole_suite() {
	HEADRACE_TRANSPORT=$1
	export HEADRACE_TRANSPORT
	for n in 2 4; do
		ranks "$n" "$programs/ring" || fail "ring, $n ranks, $1"
		ranks "$n" "$programs/matching" || fail "matching, $n ranks, $1"
		rm -f "$scratch/counter"
		ranks "$n" "$programs/barrier" "$scratch/counter" || fail "barrier, $n ranks, $1"
		ranks "$n" "$programs/pingpong" 20 100000 || fail "pingpong, $n ranks, $1"
	done
	# An odd number, and everything by rendezvous.
	ranks 3 "$programs/ring" 1000 || fail "ring, 3 ranks, $1"
	HEADRACE_EAGER_MAX=0 ranks 2 "$programs/matching" || fail "matching by rendezvous, $1"
}
