#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs written for real adapters run unmodified on the libibverbs double: Debian's ibverbs-utils and perftest.
with=$top_srcdir/test/ibverbs_double/with_double.sh
for tool in ibv_devices ibv_devinfo ibv_rc_pingpong ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_send_lat; do
	if ! command -v $tool >/dev/null; then
		echo "SKIP: no $tool (packages ibverbs-utils and perftest)"
		exit 77
	fi
done
if grep -q '^#define HR_SANITIZED' "$top_builddir/config.h"; then
	echo "SKIP: the double is built with a sanitizer, and these programs are not"
	exit 77
fi
out=$(mktemp -d) || exit 1
HR_VERBS_DOUBLE_DIR=$out/nodes
export HR_VERBS_DOUBLE_DIR
trap 'rm -rf "$out"' EXIT
mkdir "$out/nodes"
# Another release of perftest may want more of libibverbs than the double has.
"$with" ib_write_bw --version >"$out/version" 2>&1
if grep -E 'symbol lookup error|version .* not found' "$out/version"; then
	echo "SKIP: this perftest is linked with a libibverbs that the double does not know"
	exit 77
fi
. "$top_srcdir/test/ports.sh"
failed=0

fail() {
	printf 'FAIL: %s\n' "$*"
	failed=1
}

# listens PORT: does a process listen there? Looked up, as these servers take the first connection for their client.
listens() {
	grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6
}

# both WANTED COMMAND...: runs it as server and client; both must succeed, and the client print a line like WANTED.
both() {
	local wanted=$1 port server i
	shift
	free_ports
	timeout 100 "$with" "$@" -p $port >"$out/server" 2>&1 &
	server=$!
	for ((i = 0; i < 500; i++)); do
		listens $port && break
		sleep 0.1
	done
	timeout 100 "$with" "$@" -p $port 127.0.0.1 >"$out/client" 2>&1 || fail "$*: the client's status is $?"
	wait $server || fail "$*: the server's status is $?"
	if grep -qE "$wanted" "$out/client"; then
		echo "$*: $(grep -E "$wanted" "$out/client" | tail -n 1)"
	else
		fail "$*: no line like $wanted"
		cat "$out/server" "$out/client"
	fi
}

"$with" ibv_devices | grep -q double0 || fail "ibv_devices lists no double0"
"$with" ibv_devinfo | grep -q PORT_ACTIVE || fail "ibv_devinfo shows no active port"
HR_VERBS_DOUBLE_PORT=down "$with" ibv_devinfo | grep -q PORT_DOWN || fail "ibv_devinfo shows no port that is down"
both '^200 iters in' ibv_rc_pingpong -g 3 -n 200 -c
both '^200 iters in' ibv_rc_pingpong -g 3 -n 200 -c -e
for tool in ib_write_bw ib_read_bw ib_send_bw; do
	both '^ *65536 +500 ' $tool -n 500
done
both '^ *4096 +2000 ' ib_write_bw -n 500 -s 4096 -q 4 -t 16
both '^ *1000 +500 ' ib_send_bw -n 500 -s 1000 -e
both '^ *8 +500 ' ib_write_lat -n 500 -s 8
both '^ *8 +500 ' ib_write_lat -n 500 -s 8 -I 0
both '^ *8 +500 ' ib_send_lat -n 500 -s 8
exit $failed
