#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two-level collectives between machines, which are network namespaces on one bridge: results, and the number of packets between
# machines. Ranks of a machine follow each other, alternate between machines, or are unequal in number.
. "$top_srcdir/test/adi/common.sh"
server="$top_srcdir/test/adi/pmi_server.py"
namespace=hra$$
remove() {
	for i in 0 1 2 b; do ip netns del "$namespace$i" 2>"$scratch/null"; done
	rm -rf "$scratch"
}
trap remove EXIT
[ "$(id -u)" = 0 ] || { echo "skipped: network namespaces need root"; exit 77; }
command -v ip >"$scratch/null" || { echo "skipped: there is no ip(8) here (iproute2)"; exit 77; }

make_hosts() {
	local i
	ip netns add "${namespace}b" && ip netns exec "${namespace}b" ip link add bridge0 type bridge &&
		ip netns exec "${namespace}b" ip link set bridge0 up || return
	for i in 0 1 2; do
		ip netns add "$namespace$i" &&
			ip link add eth0 netns "$namespace$i" type veth peer name "port$i" netns "${namespace}b" &&
			ip netns exec "${namespace}b" ip link set "port$i" master bridge0 up &&
			ip netns exec "$namespace$i" ip address add "10.77.0.1$i/24" dev eth0 &&
			ip netns exec "$namespace$i" ip link set lo up &&
			ip netns exec "$namespace$i" ip link set eth0 up || return
	done
}
make_hosts 2>"$scratch/err" || { echo "skipped: no network namespaces, bridge or veth here: $(head -1 "$scratch/err")"; exit 77; }

# Starts its arguments on the machine that the word number PMI_RANK of $machines names.
cat >"$scratch/on_machine" <<'END'
#!/bin/bash
read -ra machine <<<"$machines"
exec ip netns exec "$namespace${machine[PMI_RANK]}" "$@"
END
chmod +x "$scratch/on_machine"
export namespace machines

# on "MACHINE..." PROGRAM [ARGUMENT...]: one rank for each machine.
on() {
	machines=$1
	local n
	n=$(wc -w <<<"$machines")
	shift
	timeout -k 5 300 "${PYTHON:-python3}" -B "$server" 1 "$n" "$scratch/on_machine" "$programs/collective/$1" "${@:2}" \
		>"$scratch/out" 2>&1 || { cat "$scratch/out"; fail "$*, ranks on $machines"; }
	cat "$scratch/out"
}

for layout in "0 0 1 1" "0 1 1 1 0"; do
	on "$layout" two_level
	on "$layout" collectives few
done
on "0 1 0 1" two_level
on "0 0 1 1 2 2" two_level
# Blocking and nonblocking collectives in different orders.
on "0 0 1 1" schedules
# Long data too.
HEADRACE_MPI_ALGORITHM=bcast=two_level,reduce=two_level,allreduce=two_level,allgather=two_level on "0 1 2 0 1" collectives
HEADRACE_MPI_ALGORITHM=allgather=two_level on "0 1 1 0" gathers
# After an error at one rank, the ranks of other machines return an error too.
on "0 1 1 1 0" told
# Algorithms for one level send more packets: so the packets are counted.
HEADRACE_MPI_ALGORITHM=barrier=dissemination,bcast=binomial,reduce=binomial,allreduce=doubling,allgather=bruck on "0 0 1 1 0" \
	two_level one

# The death of a leader, or of another rank, is an error at all ranks.
for machines in "0 0 1" "0 1 1"; do
	for case in barrier allreduce; do
		timeout -k 5 300 "${PYTHON:-python3}" -B "$server" --survive 1 3 "$scratch/on_machine" "$programs/deaths" $case \
			>"$scratch/out" 2>&1
		[ "$(grep -c 'told that rank 1 is gone' "$scratch/out")" -eq 2 ] || {
			cat "$scratch/out"
			fail "$case, ranks on $machines: the other ranks were not told"
		}
	done
done
