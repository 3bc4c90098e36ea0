#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tcp transport between two hosts, which are network namespaces joined by a virtual cable: IPv4 and IPv6, many
# addresses of which few lead there, a cable that is cut, and a peer that is stopped.
program=$top_builddir/test/channel/between_hosts
work=$(mktemp -d) || exit 1
namespace=hrc$$
status=0
remove() {
	# shellcheck disable=SC2046 # a number each
	kill $(jobs -p) 2> "$work/null"
	ip netns del "${namespace}0" 2> "$work/null"
	ip netns del "${namespace}1" 2> "$work/null"
	rm -rf "$work"
}
trap remove EXIT
[ "$(id -u)" = 0 ] || { echo "SKIP: network namespaces need root"; exit 77; }
command -v ip > "$work/null" || { echo "SKIP: there is no ip(8) here (iproute2)"; exit 77; }
on() { ip netns exec "$namespace$1" "${@:2}"; }
{ ip netns add "${namespace}0" && ip netns add "${namespace}1" &&
	ip link add "${namespace}0" netns "${namespace}0" type veth peer name "${namespace}1" netns "${namespace}1"; } \
	2> "$work/err" || { echo "SKIP: no network namespaces or veth here: $(head -1 "$work/err")"; exit 77; }
# ip mounts a /sys of the namespace's own, which fails in a chroot whose / is no mount point.
on 0 true 2> "$work/err" || { echo "SKIP: ip netns exec does not work here: $(head -1 "$work/err")"; exit 77; }
cable() {
	for i in 0 1; do on $i ip link set "$namespace$i" "$1"; done
}
for i in 0 1; do on $i ip link set lo up; done
# Not the one that streams within a host use, where the system has another.
for name in cubic bbr; do
	for i in 0 1; do
		on $i sh -c "echo $name > /proc/sys/net/ipv4/tcp_congestion_control" 2> "$work/err"
	done
done
cable up

fail() { echo "FAIL: $*"; status=1; }

# Starts both ends; sets pid0 and pid1.
start() {
	rm -f "$work"/card.* "$work"/up.*
	ip netns exec "${namespace}0" "$program" "$work" 0 "$1" & pid0=$!
	ip netns exec "${namespace}1" "$program" "$work" 1 "$1" & pid1=$!
}
both_up() {
	for _ in $(seq 600); do
		[ -e "$work/up.0" ] && [ -e "$work/up.1" ] && return
		sleep 0.05
	done
	fail "$1: the two ends did not get ready"
}
both_well() {
	wait $pid0 || fail "$1, process 0"
	wait $pid1 || fail "$1, process 1"
}

echo "- IPv6 alone"
for i in 0 1; do on $i ip -6 address add fd42::$i/64 dev "$namespace$i" nodad; done
export HEADRACE_TIMEOUT_MS=10000
start exchange; both_well "IPv6"
for i in 0 1; do on $i ip -6 address flush dev "$namespace$i" scope global; done

echo "- IPv4 alone"
for i in 0 1; do on $i ip address add 10.78.0.$((i + 1))/24 dev "$namespace$i"; done
start exchange; both_well "IPv4"

echo "- addresses that lead nowhere before the one that does"
on 0 ip link add void type veth peer name void1 && on 0 ip link set void up && on 0 ip link set void1 up &&
	for i in 1 2 3; do on 0 ip address add 10.9$i.0.1/24 dev void; done
on 1 ip route add blackhole 10.91.0.0/24
start exchange; both_well "many addresses"
on 0 ip link del void

export HEADRACE_TIMEOUT_MS=2000
for mode in idle stream full unwanted late; do
	echo "- the cable cut: $mode"
	start $mode
	both_up $mode
	cable down
	wait $pid0 || fail "the cable cut, $mode: process 0 does not notice"
	if [ $mode != idle ] && [ $mode != stream ]; then
		kill $pid1
	else
		wait $pid1 || fail "the cable cut, $mode: process 1 does not notice"
	fi
	wait
	cable up
	# The first packets after this may be lost, and a SYN is sent again only after a second.
	HEADRACE_TIMEOUT_MS=10000 start exchange
	both_well "the cable in place again"
done

echo "- a stopped peer is alive"
export HEADRACE_TIMEOUT_MS=1000
start full
both_up stopped
kill -STOP $pid1
sleep 5
kill -0 $pid0 2> "$work/null" || fail "process 0 gave a stopped peer up"
kill -CONT $pid1
kill $pid1
wait $pid0 # its peer has been killed: it ends by that
exit $status
