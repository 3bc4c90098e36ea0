#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# headrace-run with the echo daemon in place of the real one: what it passes through, how it fails, what it leaves.
. "$top_srcdir/test/cuda/door/daemon.sh"
unset HEADRACE_KEY_FILE HEADRACE_SERVER LD_LIBRARY_PATH
knock=$top_builddir/test/cuda/door/knock
# A sanitizer's library must come before the libraries that headrace-run preloads.
sanitizer=$(ldd "$knock" | awk '/lib(a|t)san/ {print $3}')
[ -z "$sanitizer" ] || knock="env LD_PRELOAD=$sanitizer $knock"
mkdir -p "$work/bin" "$work/lib/client" "$work/lib/softgpu" "$work/lib/runtime"
for library in client/libcuda.so.1 softgpu/libcuda.so.1 runtime/libcudart.so.13; do
	${CC:-cc} -x c -shared -o "$work/lib/$library" /dev/null # headrace-run preloads them
	chmod -x "$work/lib/$library"
done
cp "$top_builddir/cuda_remote/run/headrace-run" "$work/bin/headrace-run"
cp "$top_builddir/test/cuda/door/headraced-echo" "$work/bin/headraced"
export HEADRACE_LIBDIR=$work/lib
run="timeout 120 $work/bin/headrace-run"
private="$run --driver=softgpu"

server_gone() { ! grep -q "$1" /proc/net/unix; }
processes_gone() { ! grep -lq "$work/bin" /proc/[0-9]*/maps 2> "$work/null"; }
# clean WHAT: nothing of any daemon is left.
clean() {
	eventually 60 processes_gone ||
		fail "$1: processes stay: $(grep -l "$work/bin" /proc/[0-9]*/maps 2> "$work/null")"
	server_gone "@headrace-.*" || eventually 1 server_gone "@headrace-$pid-" || fail "$1: a socket stays"
}

echo "- what passes through"
pid=none
$private true || fail "status 0"
$private sh -c 'exit 3'
refused 3 "" "status 3"
$private sh -c 'kill -SEGV $$' 2> "$work/null"
refused 139 "" "a program that dies of a signal"
[ "$(echo hello | $private cat)" = hello ] || fail "stdin and stdout"
[ "$($private sh -c 'echo oops >&2' 2>&1)" = oops ] || fail "stderr"
[ "$($private printf '%s|' --local -s 'a  b' '')" = "--local|-s|a  b||" ] || fail "arguments"
[ -z "$($private bash -c 'read -r children < /proc/$$/task/$$/children; echo "$children"')" ] ||
	fail "the daemon is the program's child"
clean "a normal end"

echo "- a server of its own"
first=$($private sh -c 'echo p | '"$knock"' $HEADRACE_SERVER new') || fail "the private server"
[ -n "$first" ] || fail "no answer from the private server"
[ "$($private printenv LD_LIBRARY_PATH)" = "$work/lib/runtime:$work/lib/client" ] || fail "library path"
[ "$(LD_LIBRARY_PATH=/x $private printenv LD_LIBRARY_PATH)" = "$work/lib/runtime:$work/lib/client:/x" ] ||
	fail "library path before"
if [ ! -e /dev/nvidiactl ]; then
	$run true 2> "$work/err" || fail "without a server and a GPU"
	[ "$(wc -l < "$work/err")" = 1 ] && has_line "$work/err" "started a server with the software GPU" ||
		fail "its one line: $(cat "$work/err")"
fi
$run --driver=none true 2> "$work/err"
refused 125 "" "a server that cannot start"
clean "a private server"

for signal in INT TERM HUP KILL; do
	echo "- ended by SIG$signal"
	# What "sleep" sees is what the program sees: headrace-run has become it.
	rm -f "$work/server"
	# (A shell's background jobs ignore SIGINT, and under nohup all ignore SIGHUP: env undoes that.)
	env --default-signal=INT,HUP "$work/bin/headrace-run" --driver=softgpu \
		sh -c 'echo $HEADRACE_SERVER; exec sleep 30' > "$work/server" &
	pid=$!
	eventually 60 test -s "$work/server" || fail "not started"
	echo p | $knock "$(cat "$work/server")" new > "$work/null" || fail "the server is not there"
	kill -$signal $pid
	wait $pid 2> "$work/null"
	status=$?
	[ $status = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: status $status"
	clean "SIG$signal"
done

echo "- programs that cannot be run"
$run no-such-program 2> "$work/err"
refused 127 "no-such-program: no such program" "not found"
$run "$work/none" 2> "$work/err"
refused 127 "" "path not found"
$run "$work/lib/client/libcuda.so.1" 2> "$work/err"
refused 126 "not an executable file" "not executable"
$run "$work" 2> "$work/err"
refused 126 "" "a folder"
$run 2> "$work/err"
refused 125 "" "no program"
$run --wrong true 2> "$work/err"
refused 125 "" "a wrong option"
clean "programs that cannot be run"

echo "- servers that are not there"
$run -s unix:$work/none true 2> "$work/err"
refused 125 "no headraced listens there" "no server"
$run -s 127.0.0.1:1 true 2> "$work/err"
refused 125 "no headraced listens there" "wrong port"
$run -s "host:port" true 2> "$work/err"
refused 125 "the port is a number" "no port"
start_daemon "$work/bin/headraced" --socket="$work/sock" --no-loopback --driver=echo
$run -s "unix:$work/sock/5" true 2> "$work/err"
refused 125 "no such GPU index 5: the server has 2" "GPU 5"

$knock "unix:$work/other" answer 999 > "$work/answer" &
eventually 60 test -s "$work/answer" || fail "no listener"
$run -s "unix:$work/other" true 2> "$work/err"
refused 125 "speaks protocol 999" "another version"
wait $!

echo "- servers that are there"
[ "$($run -s "unix:$work/sock/1" printenv HEADRACE_SERVER)" = "unix:$work/sock/1" ] || fail "-s"
[ "$(HEADRACE_SERVER=unix:$work/sock $run printenv HEADRACE_SERVER)" = "unix:$work/sock" ] || fail "HEADRACE_SERVER"
[ "$($run -k /x -s "unix:$work/sock" printenv HEADRACE_KEY_FILE)" = /x ] || fail "-k"
stop_daemon
if "$work/bin/headraced" --make-key="$work/key" 2> "$work/err"; then
	free_ports
	"$work/bin/headraced" --make-key="$work/wrong"
	start_daemon "$work/bin/headraced" --socket="$work/sock" --no-loopback --driver=echo --key-file="$work/key" \
		--listen=127.0.0.1:$port
	$run -s 127.0.0.1:$port -k "$work/key" true || fail "the right key"
	$run -s 127.0.0.1:$port -k "$work/wrong" true 2> "$work/err"
	refused 125 "wrong key" "a wrong key"
	stop_daemon
else
	has_line "$work/err" "configured without libsodium" || fail "--make-key: $(cat "$work/err")"
fi

echo "- local"
[ "$($run --local printenv LD_LIBRARY_PATH)" = "$work/lib/runtime:$work/lib/softgpu" ] || fail "library path"
HEADRACE_SERVER=x $run --local printenv HEADRACE_SERVER && fail "a server in local mode"
HEADRACE_LIBDIR=$work/none $run --local true 2> "$work/err"
refused 125 "is not installed in $work/none" "no libraries"

echo "- the runtime of another version"
echo 'int cudart(void); int main(void) { return cudart(); }' > "$work/needs.c"
echo 'int cudart(void) { return 0; }' > "$work/cudart.c"
for version in 11 12 13; do
	${CC:-cc} -shared -fPIC -Wl,-soname,libcudart.so.$version -o "$work/libcudart.so.$version" "$work/cudart.c" &&
		${CC:-cc} -o "$work/dynamic$version" "$work/needs.c" "$work/libcudart.so.$version" || fail "compiling"
done
LD_LIBRARY_PATH=$work $run --local "$work/dynamic11" 2> "$work/err"
has_line "$work/err" "needs libcudart.so.11" || fail "no warning of CUDA 11"
for version in 12 13; do
	LD_LIBRARY_PATH=$work $run --local "$work/dynamic$version" 2> "$work/err"
	has_line "$work/err" warning && fail "a warning without cause: $(cat "$work/err")"
done

finish
