#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# peer.sh [--quick] [--prefix COMMAND] [--only NAME,...] [--out FOLDER]                             (make peer-figures)
# Our counterparts of figures 6 to 16 of Reano and Silla 2019 (copies between GPUs of two servers, by version, number and
# size of buffers), into docs/figures/peer_* (CSV and PNG) and docs/BENCHMARKS.md (tables): two daemons with the software
# GPU on the libibverbs double, with a model of the link, of GPUDirect RDMA, of registration, and of the bus to the GPU.
#
# The model has the proportions of the paper's machine (network 6 GB/s, GPUDirect 2.6, bus 10), 40 times as slow, so that
# the time of the bytes is long compared with the processor time, as all processes share a few cores. Absolute
# figures therefore mean nothing; the order and the shapes do. Version 1 of the paper registers the memory of each copy.
# Headrace keeps registrations; the column 1 is measured without that (HEADRACE_IB_CACHE_ENTRIES=0), "1, kept" with it.
#
#   --quick           fewer sizes and buffers, one round
#   --prefix COMMAND  runs each measurement by it (chrt, nice, taskset, ...)
#   --only NAME,...   of registering, versions, sweep_a, sweep_b: measures these again and keeps the others' data
#   --out FOLDER      instead of docs/ of the source tree
#
# Exit status: 1 when a measurement failed or the paper's order does not show; 77 when the double is missing.
# About four minutes.
set -u
: "${top_builddir:?the build folder}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "$top_builddir" && pwd)
out=$top/docs prefix=() quick='' only=registering,versions,sweep_a,sweep_b

usage() { sed -n '4,22{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

while [[ $# -gt 0 ]]; do
	case $1 in
	--quick) quick=--quick ;;
	--prefix) read -ra prefix <<<"${2:?}" && shift ;;
	--only) only=${2:?} && shift ;;
	--out) out=$(realpath "${2:?}") && shift ;;
	*) usage ;;
	esac
	shift
done

data=$out/figures
mkdir -p "$data" || exit 1
if ! "$top/test/ibverbs_double/with_double.sh" true >/dev/null; then
	echo "peer-figures: no libibverbs double in $build: make check TESTS= builds it" >&2
	exit 77
fi

cat >"$data/peer_model.csv" <<END
setting,value
HR_VERBS_DOUBLE_RATE_MBPS,150
HR_VERBS_DOUBLE_LATENCY_NS,6000
HR_VERBS_DOUBLE_OVERHEAD_NS,300
HR_VERBS_DOUBLE_GRACE_NS,100000
HR_VERBS_DOUBLE_GPU_RATE_MBPS,65
HR_VERBS_DOUBLE_GPU_REG_NS,200000
HR_VERBS_DOUBLE_GPU_REG_NS_PER_MB,1500000
HEADRACE_SOFTGPU_BUS_MBPS,250
END
while IFS=, read -r name value; do
	[[ $name = H* ]] && export "$name=$value"
done <"$data/peer_model.csv"
# The addresses of the software GPU, if it chooses them itself.
export HR_VERBS_DOUBLE_GPU=100000000000-540000000000 HEADRACE_PLACED_MEMORY=0
# Trials take 40 times as long too.
export HEADRACE_PEER_MEASURE_MS=7000

folder=$(mktemp -d /dev/shm/peer-figures.XXXXXX) || exit 1
export HR_VERBS_DOUBLE_DIR=$folder/double HEADRACE_LIBDIR=$build/cuda_remote HEADRACE_TRANSPORT=verbs HEADRACE_LOG=warn
export LD_LIBRARY_PATH=$build/test/ibverbs_double/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$build/cuda_remote/run:$PATH
mkdir "$HR_VERBS_DOUBLE_DIR"
daemons=()
stop() {
	[[ ${#daemons[@]} = 0 ]] || kill -INT "${daemons[@]}" 2>/dev/null
	wait
	daemons=()
}
trap 'stop; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

# start [SETTING=VALUE]: two daemons. The double's threads make calls that the filter for workers does not know.
start() {
	local name options=(--driver=softgpu --private --no-loopback --no-seccomp --quiet)
	[[ $(id -u) = 0 ]] && options+=(--root-workers)
	for name in a b; do
		mkfifo "$folder/$name.ready"
		env "$@" "${prefix[@]}" "$build/cuda_remote/server/headraced" --socket="$folder/$name" "${options[@]}" \
			--ready-fd=3 3>"$folder/$name.ready" &
		daemons+=($!)
		read -r _ <"$folder/$name.ready" || { echo "peer-figures: headraced did not start" >&2; exit 1; }
		rm "$folder/$name.ready"
	done
	export HEADRACE_SERVER=unix:$folder/a,unix:$folder/b
}

# measured NAME ARGUMENT...: of headrace-perf peer; its output becomes NAME.csv.
measured() {
	local name=peer_$1
	[[ ,$only, = *,$1,* ]] || return
	shift
	echo "peer-figures: $name" >&2
	if ! "${prefix[@]}" "$build/headrace-perf" peer "$@" ${quick:+"$quick"} --csv >"$folder/new.csv"; then
		echo "peer-figures: $name: not measured" >&2
		exit 1
	fi
	mv "$folder/new.csv" "$data/$name.csv"
}

# buffers VERSION: with each number and size.
buffers() {
	local n chunk list=
	for n in 2 4 8 16; do
		for chunk in 64k 128k 256k 512k 1M 2M; do
			[[ $quick && ($n = 16 || $chunk = 128k || $chunk = 2M) ]] || list+=${list:+,}$1:${n}x$chunk
		done
	done
	echo "$list"
}

sizes=4,4k,64k,256k,1M,4M,16M
[[ $quick ]] && sizes=4,64k,1M,4M
start HEADRACE_IB_CACHE_ENTRIES=0
measured registering --peer 1 --size $sizes --seconds 0.1
stop
start
measured versions --peer 1,2a,2b,3a,3b,4a,4b,hybrid --size $sizes --seconds 0.2
measured sweep_a --peer "$(buffers 3a)" --size 4M --seconds 0.05
measured sweep_b --peer "$(buffers 3b)" --size 4M --seconds 0.05
stop
"${PYTHON:-python3}" "$here/peer.py" "$out"
