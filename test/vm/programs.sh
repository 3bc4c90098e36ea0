#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# programs.sh [--osu FOLDER] [--npb FOLDER] [--ranks LIST] [--timeout SECONDS]
#
# MPI programs of others over verbs, in one boot of the Soft-RoCE machine (run.sh). The user has built them with
# Headrace's compiler wrappers, and they load the library of the prefix that the wrappers belong to.
#   --osu FOLDER    the installed folder mpi/pt2pt of the OSU micro-benchmarks: each program there, and in the folder
#                   persistent below it, runs on 2 ranks with -c (validation)
#   --npb FOLDER    the folder bin of the NAS parallel benchmarks: each program NAME.CLASS.x there runs, and must print
#                   "VERIFICATION SUCCESSFUL" or, as IS does, "Verification    =               SUCCESSFUL"
#   --ranks LIST    numbers of ranks of the NAS programs, default 1,2,4; SP and BT run on squares only
#   --timeout S     of the whole machine, default 1500
# Prints a line for each run. Exit status: 0, 1 if one failed, 77 if something is missing.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
osu='' npb='' ranks=1,2,4 timeout=1500 inside='' failed=0

usage() { sed -n '4,15{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

# folder PATH: its real path, or a message.
folder()
{
	[[ -d $1 ]] || { echo "programs: $1 is not a folder" >&2; return 1; }
	realpath "$1"
}

while [[ $# -gt 0 ]]; do
	case $1 in
	--osu) osu=$(folder "${2:?}") && shift || exit 2 ;;
	--npb) npb=$(folder "${2:?}") && shift || exit 2 ;;
	--ranks) ranks=${2:?} && shift ;;
	--timeout) timeout=${2:?} && shift ;;
	--inside) inside=1 ;;
	*) usage ;;
	esac
	shift
done
[[ $osu$npb && $ranks =~ ^[1-9][0-9,]*$ && $timeout =~ ^[1-9][0-9]*$ ]] || usage

MPIRUN=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)} ||
	{ echo "programs: skipped: no mpirun: apt-get install openmpi-bin" >&2; exit 77; }
if [[ ! $inside ]]; then
	export MPIRUN HEADRACE_VM_FOLDERS="$osu:$npb"
	exec "$here/run.sh" --timeout "$timeout" bash "$here/programs.sh" --inside --ranks "$ranks" \
		${osu:+--osu "$osu"} ${npb:+--npb "$npb"}
fi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export HEADRACE_TRANSPORT=verbs HEADRACE_TIMEOUT_MS=60000
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# run NAME RANKS COMMAND…: its output in $log, a line on stdout unless it ended well. osu_latency_mt ends with status 1
# under Open MPI too, after all its results; the rows of its output decide.
run()
{
	local name=$1 n=$2 status begin=$SECONDS
	shift 2
	timeout -k 5 400 "$MPIRUN" -n "$n" "$@" >"$log" 2>&1
	status=$?
	took=$((SECONDS - begin))
	[[ $status = 0 || $name = osu_latency_mt && $status = 1 ]] && return
	echo "FAIL: $name, $n ranks: status $status after $took s"
	tail -n 20 "$log"
	failed=1
	return 1
}

# verdict NAME RANKS STATUS: prints whether the output in $log is right, which STATUS 0 means.
verdict()
{
	if [[ $3 = 0 ]]; then
		echo "PASS: $1, $2 ranks, $took s"
	else
		echo "FAIL: $1, $2 ranks: wrong results"
		tail -n 30 "$log"
		failed=1
	fi
}

# The validation column of a program that has one says Pass or Fail for each size.
osu_program()
{
	local name=${1##*/} few=(-i 5 -x 1 -m 1:262144 -c)
	case $name in
	*bw*) few+=(-W 8) ;; # fewer messages under way: the machine is emulated
	osu_latency_mt) few+=(-t 2:2) ;; # validation wants as many threads on both sides
	esac
	run "$name" 2 "$1" "${few[@]}" || return
	! grep -q Fail "$log" && grep -q '^262144 ' "$log"
	verdict "$name" 2 $?
}

nas_program()
{
	local name=${1##*/} n
	for n in ${ranks//,/ }; do
		[[ $name = [sb][pt].* && $n != 1 && $n != 4 && $n != 9 && $n != 16 ]] && continue
		run "$name" "$n" "$1" || continue
		grep -Eiq 'verification *(=)? *successful' "$log"
		verdict "$name" "$n" $?
	done
}

for program in ${osu:+"$osu"/osu_* "$osu"/persistent/osu_*}; do
	[[ -f $program && -x $program ]] && osu_program "$program"
done
for program in ${npb:+"$npb"/*.?.x}; do
	[[ -f $program && -x $program ]] && nas_program "$program"
done
exit $failed
