# SPDX-License-Identifier: BSD-3-Clause
"""Imports the module `capsules` of python_module.c and calls what it offers. python_module.py FOLDER ENDING: the ending
of the runtime's functions for the default stream that is wanted, such as _ptsz."""
import ctypes
import sys

sys.path.insert(0, sys.argv[1])
import capsules

api = ctypes.pythonapi
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
offered = capsules.__pyx_capi__
runtime = ctypes.CDLL("libcudart.so.13")


def expect(name, result):
    answer = capsules.ask(offered[name])
    if answer != result:
        sys.exit(f"{name}: {answer}, not {result}")


expect("_cudaRuntimeGetVersion", (0, 13000))
expect("_cudaGetDeviceCount", (0, 1))
expect("_cudaOfALaterRelease", (801, 0))
expect("_make_cudaExtent", (0, 42))
query = offered["_cudaStreamQuery"]
own = ctypes.cast(getattr(runtime, "cudaStreamQuery" + sys.argv[2]), ctypes.c_void_p).value
if api.PyCapsule_GetPointer(query, api.PyCapsule_GetName(query)) != own:
    sys.exit("_cudaStreamQuery is the function of another default stream")
