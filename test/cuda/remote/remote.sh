# SPDX-License-Identifier: BSD-3-Clause
# For the tests here: a headraced of the test's own, on the driver whose engine is a double, and its end with nothing left.
# shellcheck shell=bash
set -u
. "${top_srcdir:?run by make check}/test/ports.sh"
build=${top_builddir:?run by make check}
driver=${HEADRACE_TEST_DRIVER:-$build/test/cuda/softgpu/.libs/libcuda_double.so}
folder=$(mktemp -d)
daemon=
headraced=$build/cuda_remote/server/headraced
others=() # daemons of remote_start_another
# A loaded machine may take longer to answer than the 5 s of the default.
export HEADRACE_CONNECT_TIMEOUT_MS=${HEADRACE_CONNECT_TIMEOUT_MS:-60000}

fail() {
	echo "$0: $*" >&2
	exit 1
}

# Ends the daemons; all their workers must go with them.
remote_stop() {
	local workers each
	[ -n "$daemon" ] || return 0
	workers=
	for each in "$daemon" "${others[@]}"; do
		workers="$workers $(pgrep -P "$each")"
		kill -INT "$each" 2>/dev/null
		wait "$each" 2>/dev/null
	done
	daemon=
	others=()
	for worker in $workers; do
		for _ in $(seq 100); do
			kill -0 "$worker" 2>/dev/null || continue 2
			sleep 0.05
		done
		echo "$0: worker $worker is left" >&2
		return 1
	done
	[ ! -e "$folder/socket" ] || { echo "$0: the socket is left" >&2; return 1; }
}

# The daemon's own output and its workers' go to $folder/log, and at the end to the test's. A sanitizer's report is a
# failure by itself: the daemon takes the worker's exit status for that of a lost connection.
remote_cleanup() {
	local status=$?
	remote_stop || status=1
	[ ! -e "$folder/log" ] || cat "$folder/log" >&2
	if grep -qsaE '(Address|Thread|Leak|UndefinedBehavior)Sanitizer|runtime error: ' "$folder/log"; then
		echo "$0: a sanitizer reports an error in the daemon or a worker" >&2
		status=1
	fi
	rm -rf "$folder"
	exit $status
}

remote_start() { # OPTION…: of headraced
	trap remote_cleanup EXIT
	mkfifo "$folder/ready"
	"$headraced" --socket="$folder/socket" --driver="$driver" --private --no-loopback --quiet \
		--ready-fd=3 "$@" 3>"$folder/ready" 2>"$folder/log" &
	daemon=$!
	read -r _ <"$folder/ready" || fail "headraced did not start"
	rm "$folder/ready"
	export HEADRACE_SERVER=unix:$folder/socket
}

# Starts one more daemon; its place is in $another. NAME: of its files, different for each.
remote_start_another() { # NAME [OPTION…]: of headraced
	mkfifo "$folder/$1.ready"
	"$headraced" --socket="$folder/$1" --driver="$driver" --private --no-loopback --quiet \
		--ready-fd=3 "${@:2}" 3>"$folder/$1.ready" 2>>"$folder/log" &
	others+=($!)
	read -r _ <"$folder/$1.ready" || fail "headraced did not start"
	rm "$folder/$1.ready"
	another=unix:$folder/$1
}

# Starts daemons; $HEADRACE_SERVER names all of them.
remote_start_several() { # COUNT [OPTION…]: of headraced
	local list i
	remote_start "${@:2}"
	list=$HEADRACE_SERVER
	for ((i = 2; i <= $1; i++)); do
		remote_start_another "server$i" "${@:2}"
		list=$list,$another
	done
	export HEADRACE_SERVER=$list
}

# The same, reached over TCP as servers on other hosts are.
remote_start_several_by_tcp() { # COUNT [OPTION…]: of headraced
	local list i
	free_ports "$1"
	remote_start --listen=127.0.0.1:$port "${@:2}"
	list=127.0.0.1:$port
	for ((i = 2; i <= $1; i++)); do
		port=$((port + 1))
		remote_start_another "server$i" --listen=127.0.0.1:$port "${@:2}"
		list=$list,127.0.0.1:$port
	done
	export HEADRACE_SERVER=$list HEADRACE_TRANSPORT=tcp
}

# Workers that serve a client or wait for one.
remote_workers() {
	pgrep -P "$daemon"
}
