#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh [--help]
# From a fresh clone to a CUDA program that computes on a GPU in another process: installs what is missing, builds
# out of tree into build/, installs into build/prefix and runs the examples. Without a GPU the software GPU is used.
# Run it again at will: what is there already is not made again.
# --help, -h: prints this.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/lib.sh"
case ${1:-} in
--help | -h) usage && exit ;;
?*) usage_error "$1" "demo.sh [--help]" ;;
esac

need_packages "${build_packages[@]}"
need_cuda
build_tree "$build" --prefix="$build/prefix" --with-cuda="$cuda_home"
say "building the example programs with $cuda_home/bin/nvcc"
quietly "$build/examples.log" make -C "$build" cuda-examples
say "installing into $build/prefix"
quietly "$build/install.log" make -C "$build" install

run=$build/prefix/bin/headrace-run
say "what this machine has"
"$build/prefix/bin/headrace-info" | sed 's/^/   /'
for example in saxpy streams matmul; do
	say "headrace-run $example"
	"$run" "$build/examples/bin/$example"
done
say "the same matrix product in its own process, nothing between program and device: headrace-run --local matmul"
"$run" --local "$build/examples/bin/matmul"
say "done. Your own program: nvcc -cudart shared prog.cu -o prog && $run ./prog"
say "the matrix product once more, remote"
"$run" "$build/examples/bin/matmul"
