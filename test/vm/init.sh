#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
#
# The first process of the machine that run.sh starts: loads modules, mounts the host's root read-only, makes the
# Soft-RoCE device, runs the command, reports its status. Port 1 carries stdout, 2 stderr, 3 the status.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

option()
{
	sed -n "s/.*headrace\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# A stop with a reason; run.sh shows the console's last lines when no status arrives.
fail()
{
	echo "init: $*" >/dev/console
	poweroff -f
	sleep 60
}

while read -r module; do
	insmod "/modules/$module" || fail "insmod $module"
done </modules/order

mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose hostroot /host ||
	fail "mount of the host's root"
mount -o bind /host /guest
mount -t proc proc /guest/proc
mount -t sysfs sys /guest/sys
mount -t devtmpfs dev /guest/dev
mkdir -p /guest/dev/shm /guest/dev/pts
mount -t devpts -o ptmxmode=666 devpts /guest/dev/pts
for folder in /dev/shm /tmp /run; do
	mount -t tmpfs -o mode=1777 tmpfs "/guest$folder"
done
ln -s /proc/self/fd /guest/dev/fd 2>/dev/null
work=/host$(option work)
while read -r folder; do
	mkdir -p "/guest$folder"
	mount -o bind "/host$folder" "/guest$folder"
done <"$work/visible"
hostname "$(cat "$work/hostname")"

in_root()
{
	chroot /guest /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" || fail "$*"
}
in_root ip link set lo up
in_root ip link add d0 type dummy
in_root ip addr add 192.168.77.1/24 dev d0
in_root ip link set d0 up
in_root rdma link add rxe0 type rxe netdev d0

# A port can be opened once only; pipes let the command and its children open /dev/stdout and /dev/stderr as usual.
mkfifo /stdout /stderr
port()
{
	echo /dev/vport*p"$1"
}
cat /stdout >"$(port 1)" &
out=$!
cat /stderr >"$(port 2)" &
err=$!
cp "$work/command" /guest/run/headrace-command
if [ "$(option merge)" = 1 ]; then
	exec 6>/stdout 7>&6 5>/stderr
else
	exec 6>/stdout 7>/stderr 5>&7
fi
(
	exec 5>&-
	ulimit -l unlimited
	exec chroot /guest /bin/bash /run/headrace-command
) </dev/null >&6 2>&7 6>&- 7>&-
status=$?
exec 5>&- 6>&- 7>&-

# What the command left running may hold the pipes open: output ends with the command all the same.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	kill -0 $out 2>/dev/null || kill -0 $err 2>/dev/null || break
	sleep 0.1
done
echo "$status" >"$(port 3)"
# run.sh stops the machine now.
sleep 60
poweroff -f
