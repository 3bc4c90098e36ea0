# SPDX-License-Identifier: BSD-3-Clause
"""Values of arguments that random bits would not give: read by echo.py.

For each function {parameter: C expression}, in the order in which they are drawn; an expression may use the parameters
before it. None: drawn as others are. The functions of the expressions are in runner.h.
"""

_FILL = {"dstDevice": "draw_address(run)", "N": "draw_below(run, 1000)"}
_FILL_2D = {"dstDevice": "draw_address(run)", "Width": "draw_below(run, 100)", "Height": "draw_below(run, 20)",
            "dstPitch": "400 + 4 * draw_below(run, 100)"}
_COPY = {"dstDevice": "draw_address(run)", "srcDevice": "draw_address(run)", "ByteCount": "draw_below(run, 4000)"}
_STREAM_ATTRIBUTE = {"attr": "draw_stream_attribute(run)"}

VALUES = {
    "cuCtxEnablePeerAccess": {"Flags": "0"},
    "cuMemcpyDtoD_v2": _COPY, "cuMemcpyDtoDAsync_v2": _COPY, "cuMemcpyPeer": _COPY, "cuMemcpyPeerAsync": _COPY,
    # False: on memory with this attribute the client makes asynchronous fills and waits, and the drivers would record different
    # calls. test/cuda/remote/small_calls.c sets it to true.
    "cuPointerSetAttribute": {"attribute": "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", "ptr": "draw_address(run)", "value": "0"},
    **{f"cuMemsetD{bits}{form}": _FILL for bits in (8, 16, 32) for form in ("_v2", "Async")},
    **{f"cuMemsetD2D{bits}{form}": _FILL_2D for bits in (8, 16, 32) for form in ("_v2", "Async")},
    "cuStreamCreate": {"Flags": "draw_below(run, 2)"},
    "cuStreamCreateWithPriority": {"flags": "draw_below(run, 2)"},
    "cuStreamWaitEvent": {"Flags": "0"},
    "cuStreamGetAttribute": _STREAM_ATTRIBUTE, "cuStreamSetAttribute": _STREAM_ATTRIBUTE,
    "cuEventCreate": {"Flags": "draw_event_flags(run)"},
    "cuEventRecord": {"hEvent": None, "hStream": "stream_with(run, hEvent)"},
    "cuEventRecordWithFlags": {"hEvent": None, "hStream": "stream_with(run, hEvent)", "flags": "0"},
    "cuCtxSetCacheConfig": {"config": "draw_below(run, 4)"},
    "cuMemCreate": {"size": "draw_below(run, 1ull << 40)"},
    "cuMemSetAccess": {"ptr": "draw_reserved(run)", "size": "draw_below(run, 1 << 16)"},
    **{f"cuStream{what}Value{bits}{version}": {"addr": "draw_address(run) & ~7ull",
                                               "flags": "0" if what == "Write" else "draw_below(run, 4)"}
       for what in ("Write", "Wait") for bits in (32, 64) for version in ("", "_v2")},
    "cuKernelSetCacheConfig": {"config": "draw_below(run, 4)"},
    "cuMemAlloc_v2": {"bytesize": "1 + draw_below(run, 1 << 20)"},
    "cuMemFree_v2": {"dptr": "draw_allocation(run)"},
    "cuMemAllocAsync": {"bytesize": "1 + draw_below(run, 1 << 20)"},
    "cuMemAllocFromPoolAsync": {"bytesize": "1 + draw_below(run, 1 << 20)"},
    "cuMemFreeAsync": {"dptr": "draw_allocation(run)"},
    "cuCtxRecordEvent": {"hEvent": None, "hCtx": "context_of(run, hEvent)"},
    "cuFuncSetAttribute": {"hfunc": "draw_function(run)"},
    "cuFuncSetCacheConfig": {"config": "draw_below(run, 4)"},
    "cuStreamBatchMemOp_v2": {"flags": "0"},
}

# Values that are drawn so in each call: not even the client's own checks are meant to see others.
ALWAYS = {("cuMemAllocAsync", "bytesize"), ("cuMemAllocFromPoolAsync", "bytesize"), ("cuMemFreeAsync", "dptr"),
          ("cuMemAlloc_v2", "bytesize"), ("cuMemFree_v2", "dptr")}

# The parameter that gives the length of the arrays of a call.
COUNTS = ("count",)

# Enumerations that only functions in hand.list have.
ENUMERATIONS = ("CUfunction_attribute",)

# Structs of functions in hand.list, in the notation of TRANSLATED in widths.py.
TRANSLATED = {
    "CUmemPoolProps": ((
        ("location.type", {"CU_MEM_LOCATION_TYPE_DEVICE": (("location.id", "device"),)}),
        ("allocType", {"CU_MEM_ALLOCATION_TYPE_PINNED": ()}),
        (None, (("handleTypes", "descriptor"), ("win32SecurityAttributes", "zero")))), "CUDA_ERROR_NOT_SUPPORTED"),
}

# Structs with members of which only some count, by the struct's tag: {value: {member: C expression or None (any bits)}}.
_WAIT = {"waitValue.flags": "draw_below(run, 4)"}
_WRITE = {"writeValue.flags": "0"}
MEMBERS = {
    "CUstreamBatchMemOpParams": ("operation", {
        "CU_STREAM_MEM_OP_WAIT_VALUE_32": {"waitValue.address": "draw_address(run)", "waitValue.value": None, **_WAIT},
        "CU_STREAM_MEM_OP_WAIT_VALUE_64": {"waitValue.address": "draw_address(run) & ~7ull", "waitValue.value64": None, **_WAIT},
        "CU_STREAM_MEM_OP_WRITE_VALUE_32": {"writeValue.address": "draw_address(run)", "writeValue.value": None, **_WRITE},
        "CU_STREAM_MEM_OP_WRITE_VALUE_64": {"writeValue.address": "draw_address(run) & ~7ull", "writeValue.value64": None,
                                            **_WRITE},
        "CU_STREAM_MEM_OP_BARRIER": {"memoryBarrier.flags": "draw_below(run, 2)"},
    }),
}
