# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # the arrays and cuda_home are for those who source this
# What demo.sh, test.sh and .ci/run share: the packages, the CUDA toolkit, the build. Sourced, not run.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${HEADRACE_BUILD:-$top/build}
# libtool runs for every file. In dash it takes half of the time that it takes in bash.
[ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash

say() { printf '== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# usage: prints the calling script's header comment.
usage() { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# usage_error WORD USAGE: says in one line that the script does not know the word, and ends it with status 2.
usage_error() {
	printf '%s: unknown argument "%s"; usage: %s\n' "$(basename "$0")" "$1" "$2" >&2
	exit 2
}

# Debian packages: to build; to fetch the CUDA compiler; to test; for .ci/run; for the Soft-RoCE machine; for the plots of
# make figures. Name every package that the tree uses directly, also one that another package on the list depends on:
# .ci/fresh-machine compares these lists with .ci/uses.
build_packages=(gcc g++ binutils make autoconf automake libtool pkg-config python3 git ca-certificates
	libibverbs-dev libnuma-dev libpmix-dev libzstd-dev liblz4-dev libsodium-dev libmunge-dev libseccomp-dev)
cuda_packages=(python3-venv)
test_packages=(check libmpfr-dev openmpi-bin libopenmpi-dev mpich gfortran iproute2 procps util-linux spin xz-utils munge
	environment-modules ibverbs-utils perftest)
ci_packages=(ccache clang libclang-rt-14-dev shellcheck debootstrap)
vm_packages=(qemu-system-x86 busybox-static cpio kmod rdma-core ibverbs-providers ibverbs-utils perftest)
figure_packages=(gnuplot-nox)
# NVIDIA's compiler packages on PyPI. They are installed without their dependencies, so the list is complete.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-nvrtc==13.0.88
	nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-profiler-api==13.0.85)

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

# need_cuda: puts the folder of a CUDA 13 toolkit into cuda_home. If the machine has no toolkit, the compiler's packages are
# fetched from PyPI into a private folder of the build (half a gigabyte, once).
need_cuda() {
	local nvcc
	for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
		if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13\.'; then
			cuda_home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
			return 0
		fi
	done
	[ "${cuda_wheels[*]}" = "$(cat "$build/cuda-venv/wheels" 2>/dev/null)" ] || fetch_cuda
	cuda_home=$(readlink -f "$build/cuda")
}

# fetch_cuda: installs cuda_wheels into $build/cuda-venv, whose toolkit is $build/cuda.
fetch_cuda() {
	say "no CUDA 13 toolkit here: fetching NVIDIA's compiler packages from PyPI into $build/cuda"
	need_packages "${cuda_packages[@]}"
	rm -rf "$build/cuda-venv"
	mkdir -p "$build"
	python3 -m venv "$build/cuda-venv"
	quietly "$build/pip.log" "$build/cuda-venv/bin/pip" install --no-deps --disable-pip-version-check "${cuda_wheels[@]}"
	local wheel_home
	wheel_home=$(echo "$build"/cuda-venv/lib/python3*/site-packages/nvidia/cu13)
	# The wheels lack the names that the linker looks for; the driver that programs are linked with is the one built here.
	ln -sfn lib "$wheel_home/lib64"
	ln -sf "$build/cuda_remote/client/.libs/libcuda.so" "$wheel_home/lib/libcuda.so"
	ln -sf libcudart.so.13 "$wheel_home/lib/libcudart.so"
	ln -sf libnvrtc.so.13 "$wheel_home/lib/libnvrtc.so"
	ln -sfn "$wheel_home" "$build/cuda"
	printf '%s\n' "${cuda_wheels[*]}" >"$build/cuda-venv/wheels"
}

# quietly LOG COMMAND...: runs it with its output in LOG; shows the end of LOG if it fails.
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "failed: $* (whole output: $log)"; }
}

# found_packages: the version of each installed package that configure may find. configure must run again after one of
# them was installed: what it did not find is left out of the build and of the tests.
found_packages() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' "${build_packages[@]}" "${test_packages[@]}" \
		2>/dev/null | grep '^.i' || true
}

# configure_tree FOLDER CONFIGURE-OPTION...: configures FOLDER if the options, configure itself or the installed packages
# changed since the last time.
configure_tree() {
	local folder=$1 state
	shift
	mkdir -p "$folder"
	if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
		say "making configure"
		quietly "$folder/autogen.log" "$top/autogen.sh"
	fi
	state=$(printf '%s\n' "$*"; found_packages)
	if [ ! -f "$folder/Makefile" ] || [ "$state" != "$(cat "$folder/options" 2>/dev/null)" ] ||
		[ "$top/configure" -nt "$folder/config.status" ]; then
		say "configuring in $folder"
		(cd "$folder" && quietly configure.log "$top/configure" "$@")
		printf '%s\n' "$state" >"$folder/options"
		sed -n '/^Headrace .* will be installed/,$p' "$folder/configure.log"
	fi
}

# build_tree FOLDER CONFIGURE-OPTION...: configures FOLDER where that is needed, and builds everything.
build_tree() {
	configure_tree "$@"
	say "building in $1"
	quietly "$1/make.log" make -C "$1" -j"$(nproc)"
}

# Tests of these names run alone, that is, beside no other test of their tree: they look at times, at ports or at what
# the whole machine has, or they install the tree, which links libraries anew. Tests of another tree may run at the same
# time, as in .ci/run. So no test may fail because another one takes the processors, and free_ports (test/ports.sh) draws
# ports. All other tests run beside each other, one more than there are processors, because many of them mostly wait.
tests_alone='^test/(tools|alone)/|^test/adi/hrmpicc\.sh$|^test/cuda/(door|daemon|bad_input)/'

# build_tests FOLDER: what make check needs.
build_tests() { make -C "$1" -j"$(nproc)" check TESTS=; }

# run_tests FOLDER [VARIABLE=VALUE...]: make check of a tree whose tests are built. It goes on after a failure; the exit
# status tells of it. The tests that match $tests_left_out do not run. FOLDER/test-times then has the times of each test
# (test/times.sh). HEADRACE_TEST_JOBS: how many tests run beside each other. HEADRACE_TEST_ALONE: a file that is locked while
# the tests run that run alone, so that those of another tree wait. The other tests of that tree do not wait.
run_tests() {
	local folder=$1 status=0 tests
	shift
	local -x HEADRACE_TEST_TIMES
	HEADRACE_TEST_TIMES=$(cd "$folder" && pwd)/test-times
	rm -f "$HEADRACE_TEST_TIMES"
	tests=$(make -s -C "$folder" --no-print-directory list-tests) || return
	tests=$(grep -vE "${tests_left_out:-^$}" <<<"$tests")
	make -C "$folder" -j"${HEADRACE_TEST_JOBS:-$(($(nproc) + 1))}" check "$@" TESTS="$(grep -vE "$tests_alone" <<<"$tests" | paste -sd ' ')" ||
		status=1
	${HEADRACE_TEST_ALONE:+flock -o "$HEADRACE_TEST_ALONE"} make -C "$folder" check "$@" TESTS="$(grep -E "$tests_alone" <<<"$tests" | paste -sd ' ')" || status=1
	return $status
}
