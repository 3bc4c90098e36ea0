#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086,SC2154
# A program that counts triangles on two GPUs, with a client and two servers on three hosts, which are network namespaces. The
# servers ask for a key. The bytes that each host sends and receives show that the copy between the GPUs goes from server to
# server.
. "$top_srcdir/test/cuda/door/daemon.sh"
. "$top_srcdir/test/cuda/bad_input/program.sh"
headraced=$top_builddir/cuda_remote/server/headraced
run="timeout 200 $top_builddir/cuda_remote/run/headrace-run"
triangles=$top_builddir/test/cuda/several_servers/triangles
unset HEADRACE_KEY_FILE HEADRACE_TRANSPORT HEADRACE_SERVER
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
"$headraced" --make-key="$work/key" 2> "$work/err" || { echo "SKIP: no key support: built without libsodium"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: network namespaces need root"; exit 77; }
command -v ip > "$work/null" || { echo "SKIP: there is no ip(8) here (iproute2)"; exit 77; }
hosts=hrt$$

on() { ip netns exec "$hosts$1" "${@:2}"; }

# host NAME ADDRESS: a host on the switch, which is a bridge in a namespace of its own. "unplug HOST" takes it off.
host() {
	ip netns add "$hosts$1" && on "$1" ip link set lo up &&
		ip link add eth netns "$hosts$1" type veth peer name "port$1" netns "${hosts}switch" &&
		on "$1" ip address add "$2/24" dev eth && on "$1" ip link set eth up &&
		on switch ip link set "port$1" master bridge up
}
unplug() { on switch ip link set "port$1" down; }

make_hosts() {
	ip netns add "${hosts}switch" && on switch ip link add bridge type bridge && on switch ip link set bridge up &&
		host c 10.77.0.1 && host a 10.77.0.2 && host b 10.77.0.3
}

remove_hosts() {
	local host
	kill $others 2> "$work/null"
	for host in c a b switch; do
		ip netns del "$hosts$host" 2> "$work/null"
	done
}

# count HOST rx|tx: the bytes that it has received or sent.
count() { on "$1" cat "/sys/class/net/eth/statistics/$2_bytes"; }

others=
trap 'remove_hosts; tidy' EXIT
make_hosts 2> "$work/err" || { echo "SKIP: no network namespaces, ip netns exec or veth here: $(head -1 "$work/err")"; exit 77; }
start_on() { # HOST ADDRESS
	start_daemon ip netns exec "$hosts$1" "$headraced" --socket="$work/$1" --no-loopback --driver=softgpu --key-file="$work/key" \
		--listen="$2" || finish
	mv "$work/log" "$work/$1.log"
}
start_on a 10.77.0.2
others=$daemon
start_on b 10.77.0.3
export HEADRACE_LOG=warn
servers=10.77.0.2,10.77.0.3

echo "- on one GPU, in the program's own process"
$program $run --local "$triangles" > "$work/local" 2> "$work/err" || fail "local: $(cat "$work/local" "$work/err")"

# remote WHAT SETTING...: the program on both servers. It copies $bytes bytes from one to the other.
remote() {
	on c env "${@:2}" $program $run -k "$work/key" -s $servers "$triangles" > "$work/out" 2> "$work/err" ||
		fail "$1: $(cat "$work/out" "$work/err")"
	[ "$(cut -d, -f1 "$work/out")" = "$(cut -d, -f1 "$work/local")" ] || fail "$1: not the local result: $(cat "$work/out")"
	has_line "$work/out" "devices 0 and 1" || fail "$1: not two devices: $(cat "$work/out")"
	bytes=$(sed 's/.* //' "$work/out")
}

for settings in HEADRACE_PEER=hybrid HEADRACE_ENCRYPT=1; do
	echo "- on two servers, $settings"
	sent=$(count a tx) received=$(count c rx)
	remote $settings $settings
	sent=$(($(count a tx) - sent)) received=$(($(count c rx) - received))
	[ $sent -gt "$bytes" ] || fail "$settings: the first server sent $sent bytes, of a copy of $bytes"
	[ $received -lt $((bytes / 2)) ] || fail "$settings: the client received $received bytes"
done

echo "- by way of the client"
received=$(count c rx)
remote HEADRACE_PEER=client HEADRACE_PEER=client
[ $(($(count c rx) - received)) -gt "$bytes" ] || fail "HEADRACE_PEER=client: the bytes did not come to the client"

echo "- a server that is not there"
on c $program env HEADRACE_CONNECT_TIMEOUT_MS=500 $run -k "$work/key" -s $servers,10.77.0.9 "$triangles" > "$work/out" 2> "$work/err"
refused 125 10.77.0.9 "a server that is not there"

echo "- the second server is lost before the program begins"
unplug b
on c $program env HEADRACE_CONNECT_TIMEOUT_MS=500 $run -k "$work/key" -s $servers "$triangles" > "$work/out" 2> "$work/err"
refused 125 10.77.0.3 "a server that is lost"

stop_daemon
[ $status = 0 ] || fail "the second daemon ended with $status"
daemon=$others others=
stop_daemon
[ $status = 0 ] || fail "the first daemon ended with $status"
finish
