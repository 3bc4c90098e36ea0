#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test.sh [--list|--build|--help] [CONFIGURE-OPTION...]
# From a fresh clone: installs what is missing, builds out of tree into build/ and runs all the quick tests.
# The last line says how many passed, failed and were skipped; logs are beside the tests in build/test/.
# --list: installs and configures, then prints the names of the tests, one a line, after a line "tests:"; builds nothing.
# --build: installs, configures and builds everything, the tests included, and runs none of them.
# --help, -h: prints this. A CONFIGURE-OPTION begins with -- or is VARIABLE=VALUE.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/lib.sh"
until=end
case ${1:-} in
--list | --build) until=${1#--} && shift ;;
esac
for word; do
	case $word in
	--help | -h) usage && exit ;;
	--list | --build) usage_error "$word" "test.sh [--list|--build|--help] [CONFIGURE-OPTION...]" ;;
	--?* | [A-Za-z_]*=*) ;;
	*) usage_error "$word" "test.sh [--list|--build|--help] [CONFIGURE-OPTION...]" ;;
	esac
done

need_packages "${build_packages[@]}" "${test_packages[@]}"
need_cuda
options=(--prefix="$build/prefix" --with-cuda="$cuda_home" "$@")
if [ $until = list ]; then
	configure_tree "$build" "${options[@]}"
	echo "tests:"
	make -s -C "$build" --no-print-directory list-tests
	exit
fi
build_tree "$build" "${options[@]}"
say "building the tests"
quietly "$build/check-build.log" build_tests "$build"
[ $until = end ] || exit 0
say "running the quick tests"
status=0
run_tests "$build" >"$build/check.log" 2>&1 || status=$?
grep -hE '^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR):' "$build/check.log" || true
count() { grep -chE "^($1):" "$build/check.log" || true; }
sed -nE 's/^(FAIL|ERROR): ([^ ]+).*/\2/p' "$build/check.log" | sort -u | while read -r test; do
	say "the end of $test's log"
	tail -n 30 "$build/$test.log" 2>/dev/null || tail -n 30 "$build/${test%.*}.log" 2>/dev/null || true
done
passed=$(count PASS) failed=$(count 'FAIL|ERROR|XPASS') skipped=$(count 'SKIP|XFAIL')
if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
	tail -n 40 "$build/check.log"
	die "make check failed before it ran its tests: $build/check.log"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
