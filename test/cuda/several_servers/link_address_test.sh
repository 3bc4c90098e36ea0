#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086,SC2154
# Links between servers that the client reaches over other networks than the one between them. Client and servers are network
# namespaces. The client has a network of its own with each server, and does not forward; the servers have a third network.
# The bytes on that network show which way a copy takes.
. "$top_srcdir/test/cuda/door/daemon.sh"
. "$top_srcdir/test/cuda/bad_input/program.sh"
headraced=$top_builddir/cuda_remote/server/headraced
run="timeout 200 $top_builddir/cuda_remote/run/headrace-run"
triangles=$top_builddir/test/cuda/several_servers/triangles
unset HEADRACE_KEY_FILE HEADRACE_TRANSPORT HEADRACE_SERVER HEADRACE_LINK_ADDRESS
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
"$headraced" --make-key="$work/key" 2> "$work/err" || { echo "SKIP: no key support: built without libsodium"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: network namespaces need root"; exit 77; }
command -v ip > "$work/null" || { echo "SKIP: there is no ip(8) here (iproute2)"; exit 77; }
hosts=hrl$$

on() { ip netns exec "$hosts$1" "${@:2}"; }

# cable NETWORK HOST ADDRESS HOST ADDRESS: connects two hosts by a network.
cable() {
	ip link add "$1" netns "$hosts$2" type veth peer name "$1" netns "$hosts$4" &&
		on "$2" ip address add "$3/24" dev "$1" && on "$2" ip link set "$1" up &&
		on "$4" ip address add "$5/24" dev "$1" && on "$4" ip link set "$1" up
}

make_hosts() {
	local host
	for host in c a b; do
		ip netns add "$hosts$host" && on $host ip link set lo up || return 1
	done
	cable toa c 10.78.1.1 a 10.78.1.2 && cable tob c 10.78.2.1 b 10.78.2.2 && cable data a 10.78.3.2 b 10.78.3.3
}

remove_hosts() {
	local host
	kill $others 2> "$work/null"
	for host in c a b; do
		ip netns del "$hosts$host" 2> "$work/null"
	done
}

others=
trap 'remove_hosts; tidy' EXIT
make_hosts 2> "$work/err" || { echo "SKIP: no network namespaces, ip netns exec or veth here: $(head -1 "$work/err")"; exit 77; }

start_on() { # HOST OPTION...
	start_daemon ip netns exec "$hosts$1" env $environment "$headraced" --socket="$work/$1" --no-loopback --driver=softgpu \
		--key-file="$work/key" "${@:2}" || finish
}

stop_both() {
	stop_daemon
	[ $status = 0 ] || fail "the second daemon ended with $status"
	daemon=$others others=
	stop_daemon
	[ $status = 0 ] || fail "the first daemon ended with $status"
}

export HEADRACE_LOG=warn
$program $run --local "$triangles" > "$work/local" 2> "$work/err" || fail "local: $(cat "$work/local" "$work/err")"

# copy WHAT: the program on both servers. It copies $bytes bytes from one to the other; $moved of them between the servers.
copy() {
	local before
	before=$(on a cat /sys/class/net/data/statistics/tx_bytes)
	on c $program $run -k "$work/key" -s 10.78.1.2,10.78.2.2 "$triangles" > "$work/out" 2> "$work/err" ||
		fail "$1: $(cat "$work/out" "$work/err")"
	[ "$(cut -d, -f1 "$work/out")" = "$(cut -d, -f1 "$work/local")" ] || fail "$1: not the local result: $(cat "$work/out")"
	bytes=$(sed 's/.* //' "$work/out")
	moved=$(($(on a cat /sys/class/net/data/statistics/tx_bytes) - before))
}

direct() { # WHAT
	copy "$1"
	[ $moved -gt "$bytes" ] || fail "$1: $moved bytes between the servers, of a copy of $bytes: $(cat "$work/err")"
	grep 'by way of this process' "$work/err" && fail "$1: there was no link"
}

echo "- servers that listen at the addresses that the client knows"
environment=
start_on a --listen=10.78.1.2
others=$daemon
start_on b --listen=10.78.2.2
copy "no common network"
[ $moved -lt $((bytes / 2)) ] || fail "the servers met without being told where: $moved bytes"
grep -q 'by way of this process' "$work/err" || fail "no word about the missing link: $(cat "$work/err")"
stop_both

echo "- servers that listen at all addresses"
start_on a --listen=0.0.0.0
others=$daemon
start_on b --listen=0.0.0.0
direct "all addresses"
stop_both

echo "- the address for links as an option, at the target only"
start_on a --listen=10.78.1.2
others=$daemon
start_on b --listen=10.78.2.2 --link-address=auto,10.78.3.3
direct "--link-address"
stop_both

echo "- the address for links in the environment and in a file, with one that does not exist before it"
environment="HEADRACE_LINK_ADDRESS=10.78.3.2"
start_on a --listen=10.78.1.2
others=$daemon environment=
echo "link-address = 10.78.9.9,10.78.3.3" > "$work/b.conf"
start_on b --listen=10.78.2.2 --config="$work/b.conf"
direct "HEADRACE_LINK_ADDRESS"
stop_both

echo "- wrong addresses"
for wrong in nowhere 10.78.3 "" "10.78.3.3,"; do
	on b "$headraced" --socket="$work/b" --no-loopback --link-address="$wrong" > "$work/out" 2>&1 &&
		fail "--link-address=$wrong was accepted"
	has_line "$work/out" "link-address=$wrong: want IP addresses of this host, or auto, with commas between them" ||
		fail "--link-address=$wrong: $(cat "$work/out")"
	[ -z "$wrong" ] && continue
	on b env HEADRACE_LINK_ADDRESS="$wrong" "$headraced" --socket="$work/b" --no-loopback > "$work/out" 2>&1 &&
		fail "HEADRACE_LINK_ADDRESS=$wrong was accepted"
	has_line "$work/out" "HEADRACE_LINK_ADDRESS=$wrong: want IP addresses of this host, or auto, with commas between them" ||
		fail "HEADRACE_LINK_ADDRESS=$wrong: $(cat "$work/out")"
done
finish
