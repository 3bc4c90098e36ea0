#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Connections between ranks are opened when there is something to say, and only then: counted, from MPI_Init to the end
# of MPI_Finalize, by what each side says in its log when one comes up. Each connection takes one card from the process
# manager, or two if both sides begin.
. "$top_srcdir/test/adi/common.sh"
need_mpirun

expect_ends() { # WANTED RANKS WAY
	HEADRACE_LOG=debug ranks "$2" "$programs/demand" "$3" >"$scratch/out" 2>&1 || {
		cat "$scratch/out"
		fail "$3 over $HEADRACE_TRANSPORT"
	}
	got=$(grep -c "is up over $HEADRACE_TRANSPORT" "$scratch/out")
	[ "$got" -eq "$1" ] || {
		cat "$scratch/out"
		fail "$3 over $HEADRACE_TRANSPORT: $got ends of connections, not $1"
	}
	cards=$(grep -c 'asking for the card' "$scratch/out")
	[ "$cards" -ge $((got / 2)) ] && [ "$cards" -le "$got" ] || {
		cat "$scratch/out"
		fail "$3 over $HEADRACE_TRANSPORT: $cards cards fetched for $got ends of connections"
	}
	echo "$3 over $HEADRACE_TRANSPORT, $2 ranks: $got ends of connections, $cards cards fetched"
}

for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	expect_ends 12 6 ring
	expect_ends 2 6 pair
	expect_ends 0 5 none
	HEADRACE_TIMEOUT_MS=300 expect_ends 4 4 late
	for way in gone finalize; do
		timeout -k 5 300 "$MPIRUN" --enable-recovery -n 4 "$programs/demand" $way >"$scratch/out" 2>&1
		[ "$(grep -c 'came to the end' "$scratch/out")" -eq 3 ] || {
			cat "$scratch/out"
			fail "$way over $transport: the other ranks were not told"
		}
	done
done
exit 0
