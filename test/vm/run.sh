#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh [--timeout SECONDS] [--memory MIB] COMMAND [ARGUMENT…]
#
# Runs COMMAND in a virtual machine whose kernel has a software RDMA device (Soft-RoCE: rxe0, RoCE v2 GIDs), and exits
# with COMMAND's exit status (128 + n when signal n ended it). Needs neither root nor KVM.
#
#   The guest's root is this machine's, read-only, at the same paths, with an empty /tmp, /run and /dev/shm of its own;
#   the working directory and the source and build trees stay visible even where they lie under /tmp. COMMAND runs as
#   root, its stdin is empty, its stdout and stderr arrive live. HEADRACE_VM_FOLDERS names further folders that are to
#   stay visible, separated by colons. HEADRACE_*, the paths of the build (top_srcdir, …), PATH,
#   LD_LIBRARY_PATH, the sanitizers' options and Open MPI's settings are passed on; no other variable is.
#
# Exit status of its own: 124 the timeout passed (default 600 s), 125 the machine did not come up or died,
# 77 something is missing; the one line on stderr then names the Debian packages. With HEADRACE_VM_INSTALL=1, root
# installs them.
#
# The kernel is Debian's own, unpacked into a cache and never installed. Cache: HEADRACE_VM_CACHE, else
# $top_builddir/vm, else ${XDG_CACHE_HOME:-~/.cache}/headrace/vm. HEADRACE_VM_KERNEL names a downloaded
# linux-image-*.deb to use instead of asking apt for one.
set -u
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
timeout=600
memory=2048
work=
qemu=
relays=()

say() { printf 'vm: %s\n' "$*" >&2; }

usage()
{
	sed -n '4,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
	exit 2
}

# ---- what has to be there ----

# Prints the Debian packages that are missing.
missing_packages()
{
	local pair
	for pair in qemu-system-x86_64:qemu-system-x86 cpio:cpio depmod:kmod ip:iproute2 rdma:iproute2 \
		flock:util-linux setpriv:util-linux; do
		command -v "${pair%%:*}" >/dev/null || printf '%s\n' "${pair#*:}"
	done | sort -u
	# Debian's other busybox is linked with libc, which the first root file system does not have.
	if ! command -v busybox >/dev/null || ldd "$(command -v busybox)" >/dev/null 2>&1; then
		echo busybox-static
	fi
	[[ -e /etc/libibverbs.d/rxe.driver ]] || echo ibverbs-providers
}

need_packages()
{
	if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
		say "skipped: the machine's kernel comes from Debian's packages, and dpkg or apt-get is missing here"
		exit 77
	fi
	local missing
	mapfile -t missing < <(missing_packages)
	[[ ${#missing[@]} -gt 0 ]] || return 0
	if [[ ${HEADRACE_VM_INSTALL:-0} = 1 && $(id -u) = 0 ]]; then
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends \
			"${missing[@]}" >&2 && [[ -z $(missing_packages) ]] && return 0
	fi
	say "skipped: apt-get install ${missing[*]}"
	exit 77
}

# ---- kernel and first root file system, made once ----

# Prints the path of a kernel package, downloaded into folder $1 if need be.
kernel_package()
{
	local name
	if [[ ${HEADRACE_VM_KERNEL:-} ]]; then
		realpath -e "$HEADRACE_VM_KERNEL"
		return
	fi
	name=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
	if [[ -z $name && ${HEADRACE_VM_INSTALL:-0} = 1 && $(id -u) = 0 ]]; then
		apt-get update >&2
		name=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
	fi
	[[ $name ]] || return 1
	(cd "$1" && apt-get -q download "$name" >apt.log 2>&1) || { cat "$1/apt.log" >&2; return 1; }
	printf '%s\n' "$1/$name"_*.deb
}

# Copies the modules that the guest needs, in the order in which they must be loaded, from tree $1 (kernel version $2)
# to $3. crc32_generic is needed by rdma_rxe through the crypto interface, where depmod cannot see it.
copy_modules()
{
	local module kind file name
	depmod -b "$1" "$2" || return 1
	for module in virtio_pci virtio_console 9p 9pnet_virtio crc32_generic rdma_rxe rdma_ucm veth dummy; do
		modprobe -d "$1" -S "$2" --show-depends "$module" || return 1
	done | while read -r kind file _; do
		[[ $kind = insmod ]] || continue
		name=$(basename "$file")
		name=${name%%.ko*}.ko
		[[ -e $3/$name ]] && continue
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*) cat "$file" ;;
		esac >"$3/$name" && echo "$name" >>"$3/order" || exit 1
	done
}

# Unpacks kernel package $1 in folder $2 and leaves vmlinuz and initramfs there.
build_image()
{
	local version root=$2/root
	rm -rf "$2/tree" "$root"
	mkdir -p "$2/tree" "$root"/{bin,dev,proc,sys,host,guest,modules}
	dpkg -x "$1" "$2/tree" || return 1
	version=$(basename "$(echo "$2"/tree/boot/vmlinuz-*)")
	version=${version#vmlinuz-}
	# Where /lib is a link to usr/lib, packages carry their modules under usr/lib; depmod looks under lib.
	[[ -e $2/tree/lib ]] || ln -s usr/lib "$2/tree/lib"
	copy_modules "$2/tree" "$version" "$root/modules" || return 1
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$here/init.sh" "$root/init"
	chmod 755 "$root/init"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$2/initramfs.new" || return 1
	cp "$2/tree/boot/vmlinuz-$version" "$2/vmlinuz"
	rm -rf "$2/tree" "$root"
	mv "$2/initramfs.new" "$2/initramfs"
}

need_image()
{
	local package
	cache=${HEADRACE_VM_CACHE:-${top_builddir:+$top_builddir/vm}}
	cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace/vm}
	mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 125
	exec 8>"$cache/lock"
	flock 8
	if [[ ! -e $cache/initramfs || $here/init.sh -nt $cache/initramfs || $here/run.sh -nt $cache/initramfs ]]; then
		say "unpacking a kernel into $cache"
		package=$(compgen -G "$cache/linux-image-*.deb" | head -n 1)
		[[ $package && -z ${HEADRACE_VM_KERNEL:-} ]] || package=$(kernel_package "$cache") ||
			{ say "skipped: no kernel package: apt-get update, or set HEADRACE_VM_KERNEL"; exit 77; }
		build_image "$package" "$cache" || { say "could not make the machine's image from $package"; exit 125; }
	fi
	flock -u 8
}

# ---- one run ----

# The command as a script for the guest: environment, working directory, arguments.
write_command()
{
	local name
	for name in $(compgen -e); do
		case $name in
		HEADRACE_VM_*) ;;
		HEADRACE_* | top_srcdir | top_builddir | PATH | LD_LIBRARY_PATH | *SAN_OPTIONS | OMPI_* | PMIX_* | \
			MPIRUN | PYTHON | CK_*)
			printf 'export %s=%q\n' "$name" "${!name}" ;;
		esac
	done
	printf 'cd %q && exec' "$PWD"
	printf ' %q' "$@"
	printf '\n'
}

# Folders under /tmp or /run that the command is likely to read and that the guest's own /tmp and /run would hide.
write_visible()
{
	local folder more
	IFS=: read -ra more <<<"${HEADRACE_VM_FOLDERS:-}"
	for folder in "$PWD" "${top_builddir:-}" "${top_srcdir:-}" "$(cd "$here/../.." && pwd)" "${more[@]}"; do
		[[ -d $folder ]] || continue
		folder=$(cd "$folder" && pwd)
		case $folder/ in
		/tmp/?* | /run/?* | /dev/shm/?*) printf '%s\n' "$folder" ;;
		esac
	done | sort -u
}

# The emulator executes "rep movsb" byte by byte. Without the features erms and fsrm, libc and the kernel copy by wide
# loads and stores. Mitigations protect nothing in this machine. no_timer_check: if the emulator gets no processor while the
# kernel counts the ticks of its timer, the kernel takes the timer for a broken one and panics.
start_machine()
{
	touch "$work"/{stdout,stderr,status,console}
	# Whatever happens to this script, the machine goes with it (pdeathsig).
	setpriv --pdeathsig KILL qemu-system-x86_64 \
		-accel tcg,thread=multi -cpu max,-erms,-fsrm -smp 2 -m "$memory" -display none -no-reboot -nic none -monitor none \
		-kernel "$cache/vmlinuz" -initrd "$cache/initramfs" \
		-append "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check mitigations=off headrace.work=$work headrace.merge=$merge" \
		-fsdev local,id=r,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=r,mount_tag=hostroot \
		-chardev file,id=console,path="$work/console" -serial chardev:console \
		-device virtio-serial-pci \
		-chardev file,id=stdout,path="$work/stdout" -device virtserialport,nr=1,chardev=stdout \
		-chardev file,id=stderr,path="$work/stderr" -device virtserialport,nr=2,chardev=stderr \
		-chardev file,id=status,path="$work/status" -device virtserialport,nr=3,chardev=status \
		</dev/null >"$work/qemu" 2>&1 8>&- &
	qemu=$!
	# Files in between, not pipes: a slow reader of our output must not hold the guest up, and its end
	# loses nothing.
	tail -q -s 0.1 -n +1 --pid=$qemu -f "$work/stdout" 8>&- &
	relays+=($!)
	tail -q -s 0.1 -n +1 --pid=$qemu -f "$work/stderr" >&2 8>&- &
	relays+=($!)
}

stop_machine()
{
	local i
	[[ $qemu ]] || return
	kill "$qemu" 2>/dev/null
	for ((i = 0; i < 50; i++)); do
		kill -0 "$qemu" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$qemu" 2>/dev/null
	wait "$qemu" 2>/dev/null
	qemu=
	# They end by themselves once the machine's process is gone and its last output is through.
	wait "${relays[@]}" 2>/dev/null
}

# Invoked by the exit trap.
# shellcheck disable=SC2317
clean_up()
{
	# A terminal's Ctrl-C may arrive twice.
	trap '' INT TERM HUP
	stop_machine
	[[ $work ]] && rm -rf "$work"
}

# Waits for the status line; exits with it.
await_status()
{
	local status=
	while kill -0 "$qemu" 2>/dev/null; do
		if read -r status <"$work/status"; then
			# The machine wrote all output before this line; a plain signal lets qemu pass on the last
			# of it.
			stop_machine
			exit "$status"
		fi
		if ((SECONDS >= timeout)); then
			stop_machine
			say "no end after $timeout s: stopped"
			exit 124
		fi
		sleep 0.1
	done
	if read -r status <"$work/status"; then
		exit "$status"
	fi
	say "the machine died; its last words:"
	cat "$work/qemu" >&2
	tail -n 20 "$work/console" >&2
	exit 125
}

while [[ ${1:-} = -* ]]; do
	case $1 in
	--timeout=*) timeout=${1#*=} ;;
	--memory=*) memory=${1#*=} ;;
	--timeout | --memory)
		[[ $# -gt 1 ]] || usage
		printf -v "${1#--}" %s "$2"
		shift ;;
	--) shift && break ;;
	*) usage ;;
	esac
	shift
done
[[ $# -gt 0 && $timeout =~ ^[0-9]+$ && $memory =~ ^[0-9]+$ ]] || usage

need_packages
need_image
work=$(mktemp -d "${TMPDIR:-/tmp}/headrace-vm.XXXXXX") || exit 125
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
merge=0
[[ /proc/$$/fd/1 -ef /proc/$$/fd/2 ]] && merge=1
write_command "$@" >"$work/command"
write_visible >"$work/visible"
uname -n >"$work/hostname"
SECONDS=0
start_machine
await_status
