#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# figures.sh [--quick] [--prefix COMMAND] [--only NAME,...] [--out FOLDER] [--model MBPS] [--npb FOLDER [--class C]]
#                                                                                                       (make figures)
# Our counterparts of figures 4 to 11 of Liu et al. (the four verbs designs), 13 and 14 (zero-copy in the channel beside
# a rendezvous by RDMA write in ch3), 15 (RDMA read beside write), 16 and 17 (NAS parallel benchmarks), and of the two
# sweeps of Reano and Silla, on the libibverbs double with a model of time, into docs/figures/ (CSV and PNG) and
# docs/BENCHMARKS.md (tables).
#
# The model is of what the paper rests on: moving bytes within memory costs about as much as the link. The double's
# adapter moves them by the processor, in the time of the process that posts. So the link's rate is 0.6 of what a bare
# queue pair of the double reaches without a model, measured first (--model sets it instead), which is about what is
# left of it where each byte is copied beside that; it is checked that a bare queue pair then reaches nine tenths of
# the link. A message takes 6 us, as on the paper's hardware, and 0.3 us of the link beside its bytes. Absolute figures
# therefore mean nothing; the order and the shapes do.
#
#   --quick           fewer sizes, a quarter of the time
#   --prefix COMMAND  runs each measurement by it (chrt, nice, taskset, ...); a measurement takes at most 40 s
#   --only NAME,...   of latency, bandwidth, chunks, ch3latency, ch3bandwidth, sweep, nas: measures these again and
#                     keeps the others' data
#   --out FOLDER      instead of docs/ of the source tree
#   --npb FOLDER      the folder bin of NPB 3.4 (MPI), built with hrmpicc and hrmpifort: the programs NAME.C.x there run
#                     on 2 ranks (figure 16) and 4 ranks (figure 17) under mpirun, without the model of time, as their
#                     ranks share processors; without this option figures 16 and 17 keep their data, if they have any
#   --class C         of the NAS programs, default S
#
# Exit status: 1 when a measurement failed or the paper's order (basic < piggyback < pipeline < zerocopy in bandwidth
# of large messages) does not show; 77 when the double is missing. About two minutes.
set -u
: "${top_builddir:?the build folder}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$top/docs prefix=() only=latency,bandwidth,chunks,ch3latency,ch3bandwidth,sweep,nas quick='' model=''
npb='' class=S

usage() { sed -n '4,36{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

while [[ $# -gt 0 ]]; do
	case $1 in
	--quick) quick=1 ;;
	--prefix) read -ra prefix <<<"${2:?}" && shift ;;
	--only) only=${2:?} && shift ;;
	--out) out=$(realpath "${2:?}") && shift ;;
	--model) model=${2:?} && shift ;;
	--npb) npb=$(realpath -e "${2:?}") && shift || exit 2 ;;
	--class) class=${2:?} && shift ;;
	*) usage ;;
	esac
	shift
done

double=$top/test/ibverbs_double/with_double.sh
perf=$top_builddir/headrace-perf
data=$out/figures
mkdir -p "$data" || exit 1
if ! "$double" true >/dev/null; then
	echo "figures: no libibverbs double in $top_builddir: make check TESTS= builds it" >&2
	exit 77
fi

wanted() { [[ ,$only, = *,$1,* ]]; }

# measured NAME COMMAND...: its output becomes NAME.csv; the old one stays if it fails.
measured()
{
	local name=$1
	shift
	echo "figures: $name" >&2
	if ! "${prefix[@]}" "$@" >"$data/$name.new"; then
		rm -f "$data/$name.new"
		echo "figures: $name: not measured" >&2
		exit 1
	fi
	mv "$data/$name.new" "$data/$name.csv"
}

# The sizes from $1 to $2, each $3 times the one before, and half a megabyte.
sizes()
{
	local size list=$1
	for ((size = $1 * $3; size <= $2; size *= $3)); do
		[[ $size = 1048576 ]] && list+=,524288
		list+=,$size
	done
	echo "$list"
}

step=4 seconds=0.12
[[ $quick ]] && step=16 seconds=0.04

# A place of its own: processes of other tests on the double share none of its locks.
HR_VERBS_DOUBLE_DIR=$(mktemp -d /dev/shm/figures.XXXXXX) || exit 1
export HR_VERBS_DOUBLE_DIR
double_folder=$HR_VERBS_DOUBLE_DIR
trap 'rm -rf "$double_folder"' EXIT

if [[ -z $model ]]; then
	echo "figures: the double without a model" >&2
	model=$("${prefix[@]}" "$double" "$perf" bw --design pipeline --size 1M --seconds 1 --csv |
		awk -F, 'NR == 2 { printf "%d", 0.6 * $18 }')
fi
[[ $model =~ ^[1-9][0-9]*$ ]] || { echo "figures: the double was not measured" >&2; exit 1; }
cat >"$data/model.csv" <<END
setting,value
HR_VERBS_DOUBLE_RATE_MBPS,$model
HR_VERBS_DOUBLE_LATENCY_NS,6000
HR_VERBS_DOUBLE_OVERHEAD_NS,300
HR_VERBS_DOUBLE_GRACE_NS,1000000
END
while IFS=, read -r name value; do
	[[ $name = HR_* ]] && export "$name=$value"
done <"$data/model.csv"

designs=basic,piggyback,pipeline,zerocopy
wanted chunks && measured chunks "$double" "$perf" bw --design pipeline --chunk 2k,4k,8k,16k,32k,64k \
	--size "$(sizes 4096 1048576 $step)" --seconds $seconds --csv
# As in the paper, the other figures are with the chunk size that this one shows to be the best for large messages.
HEADRACE_IB_CHUNK=$("${PYTHON:-python3}" "$here/figures.py" --best-chunk "$out") || exit 1
export HEADRACE_IB_CHUNK
wanted latency && measured latency "$double" "$perf" lat --design $designs --size "$(sizes 4 1048576 $step)" \
	--seconds $seconds --csv
wanted bandwidth && measured bandwidth "$double" "$perf" bw --design $designs --size "$(sizes 4 1048576 $step)" \
	--seconds $seconds --csv
# A queue pair of an adapter does not reach the link's rate alone, which is what the second one is for: that it is a
# tenth here is put in by the model, not found.
wanted sweep && HR_VERBS_DOUBLE_QP_RATE_MBPS=$((model * 9 / 10)) measured sweep "$double" "$perf" sweep \
	--design pipeline ${quick:+--quick} --seconds 0.03 --csv

# Figures 13 and 14: in the channel's design a message of any size is a packet in the pipe
# (none), or a packet after a rendezvous (read); in ch3's design the sender writes it into the receiver's buffer (write).
ch3() { measured "ch3$1" "$double" "$perf" "$2" --layer ch3 --design zerocopy --rendezvous none,read,write \
	--size "$(sizes 4 1048576 $step)" --seconds $seconds --csv; }
wanted ch3latency && ch3 latency lat
wanted ch3bandwidth && ch3 bandwidth bw

# nas_program RANKS PROGRAM DESIGN RENDEZVOUS: prints Mop/s, if the program has verified its results.
nas_program()
{
	HEADRACE_TRANSPORT=verbs HEADRACE_IB_DESIGN=$3 HEADRACE_RENDEZVOUS=$4 "${prefix[@]}" timeout -k 5 120 \
		"$double" "$MPIRUN" -n "$1" "$npb/$2.$class.x" |
		awk '/Mop\/s total/ { rate = $NF } tolower($0) ~ /verification *=? *successful/ { good = 1 }
			END { if (good) print rate; exit !good }'
}

# The designs take turns; of three turns the median counts. SP and BT run on square numbers of ranks.
nas()
{
	local ranks program design rendezvous rate
	echo "ranks,program,design,Mops"
	for ranks in 2 4; do
		for program in bt cg ep ft is lu mg sp; do
			[[ -x $npb/$program.$class.x && ($ranks = 4 || $program != [bs][tp]) ]] || continue
			for _ in 1 2 3; do
				for design in pipeline zerocopy ch3; do
					rendezvous="read"
					[[ $design = ch3 ]] && rendezvous="write"
					rate=$(nas_program "$ranks" "$program" "${design/ch3/zerocopy}" "$rendezvous") || {
						echo "figures: $program.$class, $ranks ranks, $design: failed" >&2
						return 1
					}
					echo "$ranks,$program.$class,$design,$rate"
				done
			done
		done
	done
}

if wanted nas && [[ $npb ]]; then
	MPIRUN=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)} ||
		{ echo "figures: no mpirun: apt-get install openmpi-bin" >&2; exit 77; }
	compgen -G "$npb/*.$class.x" >/dev/null || { echo "figures: no programs of class $class in $npb" >&2; exit 2; }
	echo "figures: nas" >&2
	unset "${!HR_VERBS_DOUBLE_@}"
	export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	nas >"$data/nas.new" || exit 1
	mv "$data/nas.new" "$data/nas.csv"
fi

"${PYTHON:-python3}" "$here/figures.py" "$out"
