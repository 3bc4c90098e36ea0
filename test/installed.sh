#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# installed.sh PREFIX PROGRAMS: uses an installed Headrace as a stranger would, with its build tree gone.
# PROGRAMS is a folder with the built CUDA examples.
set -euo pipefail
prefix=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$prefix/bin:$prefix/sbin:$PATH
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
unset HEADRACE_LIBDIR

echo "pipe.c with pkg-config"
# shellcheck disable=SC2046 # the flags are words
${CC:-cc} -Wall "$prefix/share/doc/headrace/examples/pipe.c" \
	$(pkg-config --cflags --libs headrace-channel) -o "$work/pipe"
head -c 10000019 /dev/urandom >"$work/in"
for transport in shm tcp; do
	rm -f "$work/out"
	LD_LIBRARY_PATH=$prefix/lib HEADRACE_TRANSPORT=$transport timeout 60 "$work/pipe" "$work/in" "$work/out"
	cmp "$work/in" "$work/out"
done

echo "the other examples of the channel, with the shared library and with the static one"
mkdir "$work/shared" "$work/static"
for example in pipe file_copy echo_server echo_client; do
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -pthread "$prefix/share/doc/headrace/examples/$example.c" \
		$(pkg-config --cflags --libs headrace-channel) -o "$work/shared/$example"
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -pthread "$prefix/share/doc/headrace/examples/$example.c" -L"$prefix/lib" \
		-Wl,-Bstatic -lheadrace-channel -Wl,-Bdynamic \
		$(pkg-config --cflags --libs --static headrace-channel | sed 's/-lheadrace-channel//') \
		-o "$work/static/$example"
	libraries=$(ldd "$work/static/$example")
	if [[ $libraries == *libheadrace* ]]; then
		echo "$example needs the shared library all the same"
		exit 1
	fi
done
LD_LIBRARY_PATH=$prefix/lib "${BASH_SOURCE%/*}/alone/examples_test.sh" "$work/shared"
"${BASH_SOURCE%/*}/alone/examples_test.sh" "$work/static"

echo "the same, as C++ sees the header"
printf '#include <headrace/channel.h>\nint main() { return hr_channel_version()[0] == 0; }\n' >"$work/v.cc"
# shellcheck disable=SC2046
${CXX:-c++} -Wall -Wextra "$work/v.cc" $(pkg-config --cflags --libs headrace-channel) -o "$work/v"
LD_LIBRARY_PATH=$prefix/lib "$work/v"

echo "the module file"
grep -q "^prepend-path PATH \"$prefix/bin\"" "$prefix"/share/headrace/modulefiles/headrace/*

if [ -f "$prefix/include/headrace/mpi/mpi.h" ]; then
	echo "an MPI program with pkg-config"
	# shellcheck disable=SC2046
	${CC:-cc} "$prefix/share/doc/headrace/examples/ring.c" $(pkg-config --cflags --libs headrace-mpi) -o "$work/ring"
	LD_LIBRARY_PATH=$prefix/lib "$work/ring"
	echo "an MPI program, alone and under mpirun"
	hrmpicc "$prefix/share/doc/headrace/examples/ring.c" -o "$work/ring"
	"$work/ring"
	if mpirun --version >/dev/null 2>&1; then
		# TMPDIR: mpirun fails if another mpirun creates the same folder at the same time.
		TMPDIR=$work OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 \
			mpirun --oversubscribe -n 4 "$work/ring"
	fi
fi

echo "the tools"
headrace-info
headraced --version
headrace-perf lat --size 8,1k --iters 4000
headrace-perf bw --transport tcp --size 64k --iters 400 --json

echo "CUDA programs, remote and local"
for program in saxpy matmul streams nvrtc; do
	timeout 120 headrace-run "$programs/$program"
	timeout 120 headrace-run --local "$programs/$program"
done
headrace-perf cuda

echo "a program of CUDA 12"
cat >"$work/cuda12.c" <<-'END'
	int cudaRuntimeGetVersion(int *), cudaGetDeviceCount(int *);
	int main(void)
	{
		int version, devices;
		return cudaRuntimeGetVersion(&version) || cudaGetDeviceCount(&devices) || version / 1000 != 12 || !devices;
	}
END
${CC:-cc} "$work/cuda12.c" "$prefix/lib/headrace/runtime/libcudart.so.12" -o "$work/cuda12"
timeout 120 headrace-run "$work/cuda12"
timeout 120 headrace-run --local "$work/cuda12"

echo "man pages"
for page in hr_channel.7 hr_channel_init.3 hr_channel_get.3 headrace.7 headrace-run.1 headraced.8 headraced.conf.5 headrace-info.1 headrace-perf.1; do
	test -s "$prefix/share/man/man${page##*.}/$page"
done
