# SPDX-License-Identifier: BSD-3-Clause
# Two hosts: two network namespaces joined by a pair of virtual cables. Sourced after daemon.sh; exits 77 where
# that cannot be. Sets on_server and on_client (arrays: put them before a command) and server_address.
namespace=hr$$
server_address=10.77.0.1
on_server=(ip netns exec "${namespace}s")
on_client=(ip netns exec "${namespace}c")

remove_hosts() {
	ip netns del "${namespace}s" 2> "$work/null"
	ip netns del "${namespace}c" 2> "$work/null"
}

# The third command shows that commands can run there: ip mounts a /sys of the namespace's own, which fails in a chroot
# whose / is no mount point.
make_hosts() {
	ip netns add "${namespace}s" && ip netns add "${namespace}c" && "${on_server[@]}" true &&
		ip link add "${namespace}s" netns "${namespace}s" type veth \
			peer name "${namespace}c" netns "${namespace}c" &&
		"${on_server[@]}" ip address add $server_address/24 dev "${namespace}s" &&
		"${on_client[@]}" ip address add 10.77.0.2/24 dev "${namespace}c" &&
		"${on_server[@]}" ip link set "${namespace}s" up && "${on_server[@]}" ip link set lo up &&
		"${on_client[@]}" ip link set "${namespace}c" up && "${on_client[@]}" ip link set lo up
}

[ "$(id -u)" = 0 ] || { echo "SKIP: network namespaces need root"; exit 77; }
command -v ip > "$work/null" || { echo "SKIP: there is no ip(8) here (iproute2)"; exit 77; }
trap 'remove_hosts; tidy' EXIT
make_hosts 2> "$work/err" || { echo "SKIP: no network namespaces, ip netns exec or veth here: $(head -1 "$work/err")"; exit 77; }
