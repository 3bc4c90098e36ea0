# SPDX-License-Identifier: BSD-3-Clause
"""How each type of the driver API travels: read by calls.py, which refuses a type that is not listed here.

The generated code asserts each width against the toolkit's header. Before a type is added: may a hostile client choose
its value? A number may be added. A handle that the driver follows as a pointer must go through the table of handles.
"""

# Type on the wire: types of the driver API that are passed by value, or that a pointer marked in or out points to.
NUMBERS = {
    "uint8_t": ("unsigned char",),
    "uint16_t": ("unsigned short",),
    "uint32_t": ("int", "unsigned int", "CUdevice", "CUexecAffinityType", "CUfunc_cache", "CUlimit",
                 "CUmemPool_attribute", "CUstreamAttrID"),
    "uint64_t": ("size_t", "unsigned long long", "cuuint64_t", "CUdeviceptr"),
    "float": ("float",),
}

# Handles: the kind in the table of handles (enum rc_kind without its prefix). They travel as uint64_t.
HANDLES = {
    "CUcontext": "CONTEXT", "CUstream": "STREAM", "CUevent": "EVENT", "CUmodule": "MODULE", "CUfunction": "FUNCTION",
    "CUlibrary": "LIBRARY", "CUkernel": "KERNEL", "CUmemoryPool": "POOL",
}

# Structs that travel as they lie in memory, behind a pointer marked in or out. They hold no pointer into the process.
STRUCTS = ("CUgraphEdgeData", "CUlaunchAttribute", "CUlaunchAttributeValue", "CUmemPoolProps", "CUstreamAttrValue")

BYTES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "float": 4}
WIRE_TYPE = {name: wire for wire, names in NUMBERS.items() for name in names}
