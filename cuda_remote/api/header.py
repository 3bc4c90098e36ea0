# SPDX-License-Identifier: BSD-3-Clause
"""The driver API as the toolkit's headers declare it: read by every generator in this folder.

The headers are preprocessed with __CUDA_API_VERSION_INTERNAL, which makes NVIDIA's macros step aside: every versioned
and per-thread name appears under its own symbol, once.
"""
import re
import shlex
import subprocess
import sys

HEADERS = ("cuda.h", "cudaTypedefs.h", "cudaProfiler.h", "cudaProfilerTypedefs.h")
DEFINES = ("-D__CUDA_API_VERSION_INTERNAL", "-D__CUDA_API_PUSH_VISIBILITY_DEFAULT")


class Parameter:
    """One parameter: type as written (without the name), name."""

    def __init__(self, text):
        text = " ".join(text.split())
        match = re.match(r"(.*?)(\w+)((?:\[\w*\])*)$", text)
        self.type, self.name = match.group(1).strip(), match.group(2)
        if match.group(3):  # an array parameter is a pointer
            self.type += " *"
        self.type = re.sub(r"\s*\*", " *", self.type).replace("* *", "**").replace("* *", "**")

    @property
    def is_pointer(self):
        return self.type.endswith("*")

    @property
    def pointee(self):
        assert self.is_pointer
        return re.sub(r"^const ", "", self.type[:-1].strip())

    def __str__(self):
        return self.type + ("" if self.is_pointer else " ") + self.name


class Function:
    """One function: symbol, base name (as cuGetProcAddress is asked), '_ptsz'/'_ptds' or '', parameters in order."""

    def __init__(self, symbol, parameters):
        self.symbol = symbol
        match = re.match(r"(cu\w+?)(_v(\d+))?(_pt[sd][sz])?$", symbol)
        self.base, self.revision, self.per_thread = match.group(1), int(match.group(3) or 1), match.group(4) or ""
        parameters = parameters.strip()
        self.parameters = [] if parameters in ("", "void") else [Parameter(p) for p in split_parameters(parameters)]

    def signature(self):
        return ", ".join(str(p) for p in self.parameters) or "void"


def split_parameters(text):
    """Commas at the outermost level only: a parameter may be a pointer to a function (none is in 13.0)."""
    assert "(" not in text, text
    return text.split(",")


def preprocess(compiler):
    command = shlex.split(compiler) + [*DEFINES, "-E", "-P", "-x", "c", "-"]
    source = "".join(f"#include <{header}>\n" for header in HEADERS)
    done = subprocess.run(command, input=source, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode:
        sys.exit(f"{sys.argv[0]}: '{' '.join(command)}' failed on the toolkit's headers")
    return done.stdout


def read(compiler):
    """Returns ({symbol: Function} in the header's order, {(base, per_thread): [version, ...] ascending}, errors).

    compiler: $(CC) with the flags that find the toolkit's headers. errors: [(name, value)] of CUresult.
    """
    text = preprocess(compiler)
    functions = {}
    for symbol, parameters in re.findall(r"\bCUresult\s+(cu\w+)\s*\(([^;{}]*?)\)\s*;", text):
        functions[symbol] = Function(symbol, parameters)
    versions = {}
    for base, version, per_thread in re.findall(r"\*\s*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)", text):
        versions.setdefault((base, per_thread), []).append(int(version))
    for found in versions.values():
        found.sort()
    body = re.search(r"typedef enum cudaError_enum\s*{(.*?)}", text, re.S).group(1)
    errors = [(name, int(value)) for name, value in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", body)]
    if len(functions) < 600 or len(errors) < 90:
        sys.exit(f"{sys.argv[0]}: only {len(functions)} functions and {len(errors)} errors found: is this CUDA 13's cuda.h?")
    return functions, versions, errors


def by_version(functions, versions):
    """[(base, per_thread, version, symbol)]: the header's revisions (_v2, _v3) ascend as the typedefs' versions do."""
    symbols = {}
    for function in functions.values():
        symbols.setdefault((function.base, function.per_thread), []).append(function)
    table = []
    for (base, per_thread), group in symbols.items():
        known = versions.get((base, per_thread), [])
        if len(known) != len(group):
            sys.exit(f"{sys.argv[0]}: {base}{per_thread}: {len(group)} symbols, but typedefs for versions {known}")
        group.sort(key=lambda f: f.revision)
        table += [(base, per_thread, version, f.symbol) for version, f in zip(known, group)]
    return sorted(table)
