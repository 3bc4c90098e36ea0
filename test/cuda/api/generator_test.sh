#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The generator of forwarded calls (cuda_remote/api/calls.py) and the description of a build (cuda_remote/door/build.py),
# given small tables: each type has the width of cuda.h, a type that is not listed is refused with its place.
set -euo pipefail
source_dir=$top_srcdir
build_dir=$top_builddir
python=$PYTHON
compiler="$CC $CUDA_CPPFLAGS"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source_dir"

generate() { # KIND; reads the table from stdin
	cat > "$work/table.api"
	"$python" -B cuda_remote/api/calls.py "$1" "$compiler" "$work/table.api"
}

fail() {
	echo "FAILED: $*"
	exit 1
}

refused() { # TABLE-LINE TEXT...: generation fails and the message has each TEXT
	local line=$1 message
	shift
	if message=$(generate server.c <<< "$line" 2>&1); then
		fail "accepted: $line"
	fi
	for text in "$@"; do
		[[ $message == *"$text"* ]] || fail "'$line' was refused with '$message', which lacks '$text'"
	done
	echo "refused: $message"
}

# Types that widths.py does not list, by value, and behind a pointer.
refused 'async cuLinkDestroy' 'table.api:1: cuLinkDestroy: parameter state' 'unknown type CUlinkState'
refused 'wait cuDeviceGetUuid_v2 : uuid=out dev=device' 'parameter uuid' 'unknown type CUuuid'
refused 'wait cuIpcOpenMemHandle_v2 : pdptr=out' 'parameter handle' 'CUipcMemHandle'
# A driver's pointer as a result, also inside of a struct, a pointer that is not explained, a word that does not exist.
refused 'wait cuCtxGetCurrent : pctx=out' 'parameter pctx' 'CUcontext is a handle'
refused 'wait cuTexObjectGetResourceDesc : pResDesc=out' 'parameter pResDesc' 'holds handles'
refused 'wait cuModuleGetTexRef : pTexRef=text name=text' 'parameter pTexRef' 'is not a text'
refused 'wait cuMemGetInfo_v2 : free=out' 'parameter total' 'say what the pointer is'
refused 'wait cuMemGetInfo_v2 : free=out total=in_and_out' 'parameter total' 'in_and_out'
refused 'wait cuCtxGetLimit : limit=new pvalue=out' 'parameter limit' 'CUlimit is not a handle'
refused 'wait cuNoSuchCall' 'table.api:1' 'cuNoSuchCall is not in the toolkit'
refused $'# a comment\nasync cuLinkDestroy' 'table.api:2: cuLinkDestroy'

has() { # TEXT: the generated header has this struct
	[[ $header == *"$1"* ]] || fail "the generated header lacks: $1"$'\n'"$header"
}
header=$(generate calls.h <<-'TABLE'
	async cuStreamDestroy_v2 : hStream=delete
	async cuStreamWaitEvent ptsz
	async cuMemsetD2D16_v2 ptds
	async cuMemsetD32_v2
	wait cuMemPoolCreate : pool=new poolProps=in
TABLE
)
has $'struct rc_args_cuStreamDestroy_v2 {\n\tuint64_t hStream;\n}'
has $'struct rc_args_cuStreamWaitEvent {\n\tuint64_t hStream;\n\tuint64_t hEvent;\n\tuint32_t Flags;\n}'
has $'struct rc_args_cuMemsetD2D16_v2 {\n\tuint64_t dstDevice;\n\tuint64_t dstPitch;\n\tuint64_t Width;\n\tuint64_t Height;\n\tuint16_t us;\n}'
has $'struct rc_args_cuMemPoolCreate {\n\tuint64_t pool;\n}'
source=$(generate client.c <<< 'async cuMemsetD32_v2')
[[ $source == *'_Static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t)'* ]] || fail "no assertion of CUdeviceptr's width"

# An object that gets no handle is destroyed.
source=$(generate server.c <<< $'async cuEventCreate : phEvent=new\nasync cuEventDestroy_v2 : hEvent=delete')
[[ $source == *$'result != CUDA_SUCCESS && driver.cuEventDestroy_v2)\n\t\t\tdriver.cuEventDestroy_v2(phEvent);'* ]] ||
	fail "an event without a handle is kept: $source"
refused 'async cuEventCreate : phEvent=new' 'table.api:1: cuEventCreate: parameter phEvent' 'no call in the table destroys it'

# An object that the driver does not destroy keeps its handle, unless the client does not wait for the result. A result that the
# caller does not ask for is not asked of the driver.
source=$(generate server.c <<-'TABLE'
	sync cuArrayDestroy : hArray=delete
	wait cuTexRefDestroy : hTexRef=delete
	async cuEventDestroy_v2 : hEvent=delete
	wait cuTexRefGetFormat : pFormat=out? pNumChannels=out?
TABLE
)
[[ $source == *$'\telse\n\t\tserver_object_show(&hidden_hArray);'* ]] || fail "an array's handle ends although the array lives: $source"
[[ $source == *$'if (result == CUDA_SUCCESS)\n\t\tserver_object_unbind(args.hTexRef);'* ]] || fail "a texture's handle: $source"
[[ $source == *$'function(hEvent);\n\tserver_object_unbind(args.hEvent);'* ]] || fail "an event's handle: $source"
[[ $source == *'function(args.pFormat_given ? &pFormat : NULL, '* ]] || fail "an absent result is not NULL: $source"

# A texture's number is known before the driver sees it; an array inside of a struct is looked up; a text ends with NUL.
source=$(generate server.c <<-'TABLE'
	wait cuTexObjectCreate : pTexObject=out pResDesc=in pTexDesc=in? pResViewDesc=in?
	wait cuTexObjectDestroy : texObject=delete
	wait cuModuleGetTexRef : pTexRef=alias name=text
TABLE
)
[[ $source == *'!server_number_known(RC_NUMBER_TEXTURE, texObject)'* ]] || fail "a texture's number is not checked: $source"
[[ $source == *'server_object(RC_KIND_ARRAY, (uint64_t)(uintptr_t)to->res.array.hArray'* ]] || fail "an array is not looked up: $source"
[[ $source == *'name[args.name_bytes - 1]'* ]] || fail "a text may lack its end: $source"
[[ $source == *'args.pResViewDesc_given ? '*' : NULL'* ]] || fail "an absent struct is not NULL: $source"
[[ $source == *'server_object_bind_alias(RC_KIND_TEXTURE_REF, args.pTexRef, (void *)(uintptr_t)pTexRef, NULL, args.hmod)'* ]] ||
	fail "an alias does not end with its owner: $source"

# The description of a build: comments and the names of hooks make no difference, an argument or a member does.
part() { # MEMBER TABLE-LINE HEADER-TEXT
	generate wire.txt <<< "$2" > "$work/wire.txt"
	printf '%s\n' "$3" > "$work/header.h"
	"$python" -B cuda_remote/door/build.py "$work/wire.txt" "$work/header.h" | grep -F ".$1 ="
}
line='wait cuMemAlloc_v2 check=memory_check_alloc : dptr=out'
other='wait cuMemAlloc_v2 check=another_check : dptr=out # a comment'
struct='struct s { int a; };'
[ "$(part calls "$line" "$struct")" = "$(part calls "$other" "$struct")" ] || fail "a hook changes the description"
[ "$(part calls "$line" "$struct")" != "$(part calls "sync${line#wait}" "$struct")" ] || fail "a mode does not count"
[ "$(part wire "$line" "$struct")" = "$(part wire "$line" '/* why */ struct  s { int a; }; // what')" ] ||
	fail "a comment changes the description"
[ "$(part wire "$line" "$struct")" != "$(part wire "$line" 'struct s { long a; };')" ] || fail "a member does not count"
pool='wait cuMemPoolCreate : pool=new poolProps=in'
[[ $(part structs "$pool" "$struct") == *'sizeof(CUmemPoolProps)'* ]] || fail "a struct's size does not count"

# The table of the tree describes itself the same way twice.
cmp <("$python" -B cuda_remote/api/calls.py wire.txt "$compiler" cuda_remote/api/calls/*.api) "$build_dir/cuda_remote/api/wire.txt"
