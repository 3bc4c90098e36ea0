# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # the arrays and cuda_home are for those who source this
# What demo.sh, test.sh and .ci/run share: the packages, the CUDA toolkit, the build. Sourced, not run.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${HEADRACE_BUILD:-$top/build}

say() { printf '== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Debian packages: to build; to test; for the Soft-RoCE machine; for the plots of make figures.
build_packages=(gcc g++ make autoconf automake libtool pkg-config python3 git ca-certificates
	libibverbs-dev libnuma-dev libpmix-dev libzstd-dev liblz4-dev libsodium-dev libseccomp-dev)
test_packages=(check libmpfr-dev openmpi-bin libopenmpi-dev iproute2 procps spin xz-utils ibverbs-utils perftest)
vm_packages=(qemu-system-x86 busybox-static cpio kmod rdma-core ibverbs-providers ibverbs-utils perftest)
figure_packages=(gnuplot-nox)

# need_packages NAME...: installs those of the packages that are missing; without root says how and stops.
need_packages() {
	local missing=() name
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null | grep -q '^.i' || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		die "Packages are missing. Install them with this line, then run this again:
    sudo apt-get install -y --no-install-recommends ${missing[*]}"
	fi
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	local log="$build/packages.log"
	mkdir -p "$build"
	{ apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
		{ tail -n 20 "$log" >&2; die "apt-get failed; its whole output is in $log"; }
}

# need_cuda: puts a CUDA 13 toolkit's folder into cuda_home. Where the machine has none, the compiler's packages from
# PyPI go into a private folder of the build (half a gigabyte, once).
need_cuda() {
	local nvcc
	for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$build/cuda/bin/nvcc"; do
		if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13\.'; then
			cuda_home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
			return 0
		fi
	done
	say "no CUDA 13 toolkit here: fetching NVIDIA's compiler packages from PyPI into $build/cuda"
	need_packages python3-venv
	python3 -m venv "$build/cuda-venv"
	"$build/cuda-venv/bin/pip" install --quiet --disable-pip-version-check \
		nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-nvrtc==13.0.88 \
		nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
	local wheel_home
	wheel_home=$(echo "$build"/cuda-venv/lib/python3*/site-packages/nvidia/cu13)
	# The wheels lack the names that the linker looks for; the driver that programs are linked with is the one built here.
	ln -sfn lib "$wheel_home/lib64"
	ln -sf "$build/cuda_remote/client/.libs/libcuda.so" "$wheel_home/lib/libcuda.so"
	ln -sf libcudart.so.13 "$wheel_home/lib/libcudart.so"
	ln -sf libnvrtc.so.13 "$wheel_home/lib/libnvrtc.so"
	ln -sfn "$wheel_home" "$build/cuda"
	cuda_home=$wheel_home
}

# quietly LOG COMMAND...: runs it with its output in LOG; shows the end of LOG if it fails.
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "failed: $* (whole output: $log)"; }
}

# build_tree FOLDER CONFIGURE-OPTION...: configures FOLDER where its options changed, and builds everything.
build_tree() {
	local folder=$1
	shift
	mkdir -p "$folder"
	if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
		say "making configure"
		quietly "$folder/autogen.log" "$top/autogen.sh"
	fi
	if [ ! -f "$folder/Makefile" ] || [ "$*" != "$(cat "$folder/options" 2>/dev/null)" ] ||
		[ "$top/configure" -nt "$folder/config.status" ]; then
		say "configuring in $folder"
		(cd "$folder" && quietly configure.log "$top/configure" "$@")
		printf '%s\n' "$*" >"$folder/options"
		sed -n '/^Headrace .* will be installed/,$p' "$folder/configure.log"
	fi
	say "building in $folder"
	quietly "$folder/make.log" make -C "$folder" -j"$(nproc)"
}
