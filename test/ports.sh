# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that start servers: sourced, not run.
# shellcheck shell=bash

# free_ports [COUNT]: sets port to the first of COUNT (1) consecutive TCP ports that no socket of this network namespace uses. They
# are below the ports that the kernel chooses itself. Other tests run at the same time, so the first candidate is drawn.
free_ports() {
	local used i
	for ((port = 20000 + RANDOM * 12000 / 32768; ; port = port < 31900 ? port + 1 : 20000)); do
		used=
		for ((i = 0; i < ${1:-1}; i++)); do
			grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X $((port + i))) " /proc/net/tcp /proc/net/tcp6 && used=yes
		done
		[ -n "$used" ] || return 0
	done
}
