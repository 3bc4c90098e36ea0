# SPDX-License-Identifier: BSD-3-Clause
"""How each type of the driver API travels: read by calls.py, which refuses a type that is not listed here.

The generated code asserts each width against the toolkit's header. Before a type is added: may a hostile client choose
its value? A number may be added. A handle that the driver follows as a pointer must go through the table of handles.
"""

# Type on the wire: types of the driver API that are passed by value, or that a pointer marked in or out points to.
NUMBERS = {
    "uint8_t": ("unsigned char",),
    "uint16_t": ("unsigned short",),
    "uint32_t": ("int", "unsigned int", "unsigned", "cuuint32_t", "CUaddress_mode", "CUarray_format", "CUatomicOperation", "CUdevice",
                 "CUexecAffinityType", "CUfilter_mode", "CUflushGPUDirectRDMAWritesScope",
                 "CUflushGPUDirectRDMAWritesTarget", "CUfunc_cache", "CUlimit", "CUmemAccess_flags",
                 "CUmemAllocationGranularity_flags", "CUmemPool_attribute", "CUpointer_attribute", "CUstreamAttrID"),
    "uint64_t": ("size_t", "unsigned long long", "cuuint64_t", "CUdeviceptr", "CUsurfObject", "CUtexObject"),
    "float": ("float",),
}

# Handles: the kind in the table of handles (enum rc_kind without its prefix). They travel as uint64_t.
HANDLES = {
    "CUcontext": "CONTEXT", "CUstream": "STREAM", "CUevent": "EVENT", "CUmodule": "MODULE", "CUfunction": "FUNCTION",
    "CUlibrary": "LIBRARY", "CUkernel": "KERNEL", "CUmemoryPool": "POOL", "CUarray": "ARRAY",
    "CUmipmappedArray": "MIPMAP", "CUtexref": "TEXTURE_REF", "CUsurfref": "SURFACE_REF",
    "CUmemGenericAllocationHandle": "ALLOCATION",
}
# Kinds of objects that end with their context. Of other such kinds the client keeps more than the context.
OF_CONTEXT = ("ARRAY", "MIPMAP", "TEXTURE_REF", "SURFACE_REF")
# ALIASES: the kinds of aliases. OWNERS: the kinds of objects whose aliases end with them.
ALIASES = ("ARRAY", "POOL", "TEXTURE_REF")
OWNERS = ("ARRAY", "MIPMAP")

# Numbers that the driver chooses for an object. Kernels read them, so client and program have the driver's number. The
# worker accepts only numbers that the driver gave to its session. The kind: enum rc_number without its prefix.
NUMBERED = {"CUtexObject": "TEXTURE", "CUsurfObject": "SURFACE"}

# Structs that travel as they lie in memory. They hold no pointer into the process.
STRUCTS = (
    "CUDA_ARRAY_DESCRIPTOR", "CUDA_ARRAY3D_DESCRIPTOR", "CUDA_ARRAY_MEMORY_REQUIREMENTS", "CUDA_ARRAY_SPARSE_PROPERTIES",
    "CUDA_MEMCPY3D", "CUDA_RESOURCE_DESC", "CUDA_RESOURCE_VIEW_DESC", "CUDA_TEXTURE_DESC", "CUexecAffinityParam",
    "CUgraphEdgeData",
    "CUlaunchAttribute", "CUlaunchAttributeValue",
    "CUmemAccessDesc", "CUmemAllocationProp", "CUmemLocation", "CUmemPoolProps", "CUstreamAttrValue",
    "CUstreamBatchMemOpParams",
)

# Structs with members that must be translated: ((tag, {value of the tag: ((member, what), ...)}), ...), error for other
# values of a tag. A tag of None: always. what: a type of HANDLES; device; address (of device memory: it decides which server
# the call goes to); zero (must be 0, as it would be a pointer into the process or a file of it); clear (becomes 0);
# descriptor (no other type of shareable handles).
_ON_DEVICE = "CU_MEM_LOCATION_TYPE_DEVICE"
TRANSLATED = {
    "CUDA_RESOURCE_DESC": ((
        ("resType", {"CU_RESOURCE_TYPE_ARRAY": (("res.array.hArray", "CUarray"),),
                     "CU_RESOURCE_TYPE_MIPMAPPED_ARRAY": (("res.mipmap.hMipmappedArray", "CUmipmappedArray"),),
                     "CU_RESOURCE_TYPE_LINEAR": (("res.linear.devPtr", "address"),),
                     "CU_RESOURCE_TYPE_PITCH2D": (("res.pitch2D.devPtr", "address"),)}),), "CUDA_ERROR_INVALID_VALUE"),
    "CUDA_MEMCPY3D": ((
        ("srcMemoryType", {"CU_MEMORYTYPE_ARRAY": (("srcArray", "CUarray"), ("srcHost", "clear")),
                           "CU_MEMORYTYPE_DEVICE": (("srcDevice", "address"), ("srcHost", "clear")),
                           "CU_MEMORYTYPE_HOST": (("srcHost", "clear"),)}),
        ("dstMemoryType", {"CU_MEMORYTYPE_ARRAY": (("dstArray", "CUarray"), ("dstHost", "clear")),
                           "CU_MEMORYTYPE_DEVICE": (("dstDevice", "address"), ("dstHost", "clear")),
                           "CU_MEMORYTYPE_HOST": (("dstHost", "clear"),)}),
        (None, (("reserved0", "zero"), ("reserved1", "zero")))), "CUDA_ERROR_INVALID_VALUE"),
    "CUmemAccessDesc": ((("location.type", {_ON_DEVICE: (("location.id", "device"),)}),), "CUDA_ERROR_NOT_SUPPORTED"),
    "CUmemLocation": ((("type", {_ON_DEVICE: (("id", "device"),)}),), "CUDA_ERROR_NOT_SUPPORTED"),
    "CUmemAllocationProp": ((
        ("location.type", {_ON_DEVICE: (("location.id", "device"),)}),
        (None, (("requestedHandleTypes", "descriptor"), ("win32HandleMetaData", "zero")))), "CUDA_ERROR_NOT_SUPPORTED"),
    "CUstreamBatchMemOpParams": ((
        ("operation", {"CU_STREAM_MEM_OP_WAIT_VALUE_32": (("waitValue.address", "address"),),
                       "CU_STREAM_MEM_OP_WAIT_VALUE_64": (("waitValue.address", "address"),),
                       "CU_STREAM_MEM_OP_WRITE_VALUE_32": (("writeValue.address", "address"),),
                       "CU_STREAM_MEM_OP_WRITE_VALUE_64": (("writeValue.address", "address"),),
                       "CU_STREAM_MEM_OP_BARRIER": (), "CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES": ()}),),
        "CUDA_ERROR_INVALID_VALUE"),
}

BYTES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "float": 4}
WIRE_TYPE = {name: wire for wire, names in NUMBERS.items() for name in names}
