#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies from worker to worker: every version, over shared memory, TCP and encrypted TCP; the bytes that the client sends and
# receives; a server that dies in the middle; servers that cannot reach each other; and a link that fails.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
headraced=$build/cuda_remote/server/headraced
peer=$build/test/cuda/remote/peer
links=$build/test/cuda/remote/peer_links
free_ports 3
ports=$port

# With a key, over TCP: $HEADRACE_SERVER names them.
start_three_by_tcp() {
	local i list=
	trap remote_cleanup EXIT
	for i in 0 1 2; do
		mkfifo "$folder/tcp.$i"
		"$headraced" --socket="$folder/tcp-socket.$i" --listen=127.0.0.1:$((ports + i)) --key-file="$folder/key" \
			--driver="$driver" --no-loopback --quiet --ready-fd=3 "$@" 3>"$folder/tcp.$i" 2>>"$folder/log" &
		[ -n "$daemon" ] && others+=($!)
		daemon=${daemon:-$!}
		read -r _ <"$folder/tcp.$i" || fail "headraced did not start"
		rm "$folder/tcp.$i"
		list=$list${list:+,}127.0.0.1:$((ports + i))
	done
	export HEADRACE_SERVER=$list HEADRACE_KEY_FILE=$folder/key
}

# Ends the daemons and forgets their files.
stop_three() {
	remote_stop || fail "something is left"
	rm -f "$folder/log"
	unset HEADRACE_KEY_FILE HEADRACE_SERVER
}

# copies VERSION [SETTING=VALUE...]
copies() {
	local version=$1
	shift
	env HEADRACE_PEER="$version" "$@" timeout 300 "$peer" shapes 2>"$folder/err" || fail "HEADRACE_PEER=$version $*: $(cat "$folder/err")"
	grep 'by way of this process' "$folder/err" && fail "HEADRACE_PEER=$version $*: there was no link"
}

midway() { # kills the second server's worker while it copies
	mkfifo "$folder/out"
	timeout 100 "$links" midway >"$folder/out" 2>"$folder/err" &
	local client=$! line
	exec 4<"$folder/out"
	read -r line <&4 || fail "the client did not start: $(cat "$folder/err")"
	[ "$line" = copying ] || fail "the client said: $line"
	for worker in $(pgrep -P "${others[0]}"); do
		kill -9 "$worker"
	done
	wait $client || fail "a server killed in the middle of copies: $(cat "$folder/err")"
	rm "$folder/out"
}

# ---- within a host

export HEADRACE_LOG=info
remote_start_several 3
export HEADRACE_LOG=warn
for version in 1 2a 2b 4a 4b; do
	copies $version
done
copies 3a HEADRACE_PEER_BUFFERS=1 HEADRACE_PEER_CHUNK=4k
copies 3b HEADRACE_PEER_BUFFERS=64 HEADRACE_PEER_CHUNK=5000
grep -qa 'is up over shm' "$folder/log" || fail "no link used shared memory"
for wrong in PEER=5 PEER_BUFFERS=0 PEER_BUFFERS=65 PEER_CHUNK=100; do
	env "HEADRACE_$wrong" "$peer" refused 2>"$folder/err" || fail "HEADRACE_$wrong was accepted"
	grep -q "HEADRACE_${wrong%=*}" "$folder/err" || fail "the message does not name HEADRACE_${wrong%=*}"
done
midway
stop_three

# ---- workers that may hold little memory

HEADRACE_STAGING=1M remote_start_several 3
for version in 2b 4a 4b hybrid; do
	copies $version
done
stop_three

# ---- servers that cannot reach each other: the second one has a network of its own, or refuses links

HEADRACE_SESSION_LINKS=0 remote_start
list=$HEADRACE_SERVER
remote_start_another second
list=$list,$another
remote_start_another third
export HEADRACE_SERVER=$list,$another
timeout 300 "$peer" shapes 2>"$folder/err" || fail "without links: $(cat "$folder/err")"
[ "$(grep -c 'by way of this process' "$folder/err")" = 4 ] || fail "not one line for each pair without a link: $(cat "$folder/err")"
stop_three
if unshare -n true 2>/dev/null; then
	remote_start
	list=$HEADRACE_SERVER
	mkfifo "$folder/second.ready"
	unshare -n "$headraced" --socket="$folder/second" --driver="$driver" --private --no-loopback --quiet --ready-fd=3 \
		3>"$folder/second.ready" 2>>"$folder/log" &
	others+=($!)
	read -r _ <"$folder/second.ready" || fail "headraced did not start"
	list=$list,unix:$folder/second
	remote_start_another third
	export HEADRACE_SERVER=$list,$another
	timeout 300 "$peer" shapes 2>"$folder/err" || fail "a network of its own: $(cat "$folder/err")"
	[ "$(grep -c 'by way of this process' "$folder/err")" = 4 ] || fail "not one line for each pair: $(cat "$folder/err")"
	stop_three
fi

# ---- a link that fails in a copy; the client's connections carry too few bytes to be cut

for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	remote_start
	list=$HEADRACE_SERVER
	headraced=$build/test/cuda/remote/headraced-faults
	HR_FAULTS=cut_get_at=6000000 remote_start_another second
	headraced=$build/cuda_remote/server/headraced
	HEADRACE_PEER=3b HEADRACE_SERVER=$list,$another timeout 100 "$links" cut 2>"$folder/err" ||
		fail "a link that fails, over $transport: $(cat "$folder/err")"
	grep -q 'has failed; copies between them go by way of this process' "$folder/err" || fail "no link has failed over $transport"
	stop_three
	unset HEADRACE_TRANSPORT
done

# ---- over TCP, with a key

"$headraced" --make-key="$folder/key" 2>"$folder/err" ||
	{ grep -q libsodium "$folder/err" && { echo "no libsodium: without a key file"; exit 0; }; fail "$(cat "$folder/err")"; }
export HEADRACE_TRANSPORT=tcp HEADRACE_LOG=info
start_three_by_tcp
export HEADRACE_LOG=warn
copies hybrid
timeout 100 "$links" count || fail "the bytes of a copy"
# A copy costs the client a message to each of the two workers; it has no part in what follows.
HEADRACE_LOG=debug timeout 100 "$links" count 2>"$folder/err" || fail "the calls of a copy"
[ "$(grep -c 'call [0-9]* peer_copy' "$folder/err")" = 88 ] || fail "44 copies: $(grep -o 'call [0-9]* peer_.*' "$folder/err")"
grep -E 'call [0-9]* peer_(gate|open)' "$folder/err" && fail "the client lets streams go on"
grep -qa 'is up over tcp' "$folder/log" || fail "no link used TCP"
midway
stop_three
export HEADRACE_LOG=info
start_three_by_tcp --encrypt
export HEADRACE_LOG=warn
copies hybrid
timeout 100 "$links" count || fail "the bytes of a copy, encrypted"
grep -a 'is up over' "$folder/log" | grep -v 'tcp, encrypted' && fail "a connection was not encrypted"
grep -qa 'is up over tcp, encrypted' "$folder/log" || fail "no connection was encrypted"
# The client's connections stay in this host's kernel; those between the workers are encrypted nevertheless.
: >"$folder/log"
HEADRACE_SERVER=unix:$folder/tcp-socket.0,unix:$folder/tcp-socket.1,unix:$folder/tcp-socket.2
copies hybrid
grep -qa 'is up over tcp, encrypted' "$folder/log" || fail "servers that demand encryption: a link was not encrypted"
exit 0
