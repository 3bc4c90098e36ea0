#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check sets it
# The module file, loaded and unloaded by Environment Modules or Lmod.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}
file=$(echo "$top_builddir"/scripts/modulefile/*)
[ -s "$file" ] || fail "there is no module file: $file"
configured=$(sed -n 's/^setenv HEADRACE_HOME "\(.*\)"/\1/p' "$file")
[ -n "$configured" ] || fail "$file does not set HEADRACE_HOME"
prefix=/opt/headrace-of-this-test # the configured one may be in the search path already, as /usr/local is
mkdir -p "$work/headrace"
sed "s|\"$configured|\"$prefix|" "$file" > "$work/headrace/$(basename "$file")"
sed 's/"$/-other"/' "$work/headrace/$(basename "$file")" > "$work/headrace/other"
version=$(basename "$file")

modules=
for program in /usr/lib/*/modulecmd.tcl /usr/lib/modulecmd.tcl /usr/share/modules/libexec/modulecmd.tcl \
	/usr/share/lmod/*/libexec/lmod /usr/share/lmod/lmod/libexec/lmod; do
	[ ! -e "$program" ] || modules="$modules $program"
done
[ -n "$modules" ] || { echo "SKIP: neither Environment Modules nor Lmod is here (Debian: environment-modules)"; exit 77; }

# module ARGUMENT…: in this shell. Both programs write shell commands to stdout.
module() {
	local commands
	commands=$("$program" bash "$@" 2> "$work/err")
	eval "$commands" > "$work/out" 2>> "$work/err"
}

for program in $modules; do (
	echo "- $program"
	export MODULEPATH=$work PATH=/usr/local/bin:/usr/bin:/bin LD_LIBRARY_PATH=/somewhere MANPATH=/usr/share/man: LOADEDMODULES='' _LMFILES_=''
	unset HEADRACE_HOME PKG_CONFIG_PATH
	module load "headrace/$version"
	[ "${HEADRACE_HOME:-}" = "$prefix" ] || fail "HEADRACE_HOME is ${HEADRACE_HOME:-not set}: $(cat "$work/err")"
	[[ $PATH == "$prefix/bin:"* ]] || fail "PATH is $PATH"
	[ "$LD_LIBRARY_PATH" = "$prefix/lib:/somewhere" ] || fail "LD_LIBRARY_PATH is $LD_LIBRARY_PATH"
	[[ $MANPATH == "$prefix/share/man:"* ]] || fail "MANPATH is $MANPATH"
	[ "$PKG_CONFIG_PATH" = "$prefix/lib/pkgconfig" ] || fail "PKG_CONFIG_PATH is $PKG_CONFIG_PATH"
	module load headrace/other
	[ "$(tr : '\n' <<< "$PATH" | grep -c "^$prefix/bin")" = 1 ] || fail "two versions are loaded: $PATH"
	module help "headrace/$version"
	grep -q 'man headrace' "$work/err" "$work/out" || fail "no help: $(cat "$work/err" "$work/out")"
	module purge
	[ -z "${HEADRACE_HOME:-}" ] && [ "$LD_LIBRARY_PATH" = /somewhere ] || fail "not unloaded: ${HEADRACE_HOME:-} $LD_LIBRARY_PATH"
	[[ $PATH != *"$prefix"* ]] || fail "PATH after unloading is $PATH"
) || exit 1; done
exit 0
