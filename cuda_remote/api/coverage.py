# SPDX-License-Identifier: BSD-3-Clause
"""coverage.py COMPILER NM CLIENT SOFTGPU TABLE...: every driver function and what becomes of it.

Ends with the table of docs/STATUS.md, by group.

For the forwarding client as the table of calls says, checked against the library: what the table names must be defined there, what
it does not name must not. For the software GPU by its library: a weak definition is one that nobody replaced.
"""
import re
import shlex
import subprocess
import sys

import calls
import header


# The first pattern that a name begins with is its group.
GROUPS = (
    ("graphs", "cuGraph|cuUserObject|cuDevice[GS]etGraph|cuDeviceGraph"),
    ("arrays, textures, surfaces", "cuArray|cuMipmapped|cuTex|cuSurf|cuTensorMap|cuModuleGet(Tex|Surf)Ref|cuDeviceGetTexture1D"),
    ("occupancy", "cuOccupancy"),
    ("events", "cuEvent"),
    ("memset", "cuMemset"),
    ("copies", "cuMemcpy"),
    ("IPC, external memory, multicast, checkpoints, logs, device resources",
     "cuIpc|cu(Import|Destroy|Signal|Wait)?External|cuMulticast|cuCheckpoint|cuLogs|cuCoredump|cuGreen|cuDev(Sm)?Resource|"
     "cuDevice(GetDevResource|(Unr|R)egisterAsync|GetExecAff)|cuMemBatchDecompress|cuFlushGPU"),
    ("pointers", "cuPointer"),
    ("launch", "cuLaunch|cuParam"),
    ("kernels, functions", "cuFunc|cuKernel"),
    ("modules, libraries, linker", "cuModule|cuLibrary|cuLink"),
    ("streams", "cuStream|cuThreadExchange"),
    ("memory", "cuMem"),
    ("contexts", "cuCtx"),
    ("devices, primary context", "cuDevice"),
    ("init, version, profiler, errors", ""),
)


def group_of(symbol):
    return next(name for name, pattern in GROUPS if re.match(pattern, symbol))


def print_groups(functions, kinds, softgpu):
    columns = ("forwarded", "local", "hand-written")
    rows = {name: [0] * 5 for name, _ in GROUPS + (("all", ""),)}
    for symbol in functions:
        kind = kinds.get(symbol)
        add = [1, *(int(kind == column) for column in columns), int(bool(softgpu.get(symbol)))]
        for name in (group_of(symbol), "all"):
            rows[name] = [a + b for a, b in zip(rows[name], add)]
    print("\n| group | names | client: forwarded | local | by hand | software GPU |\n|---|---|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(map(str, row))} |")


def defined(nm, library):
    """{symbol: True if the definition is strong}"""
    done = subprocess.run([*shlex.split(nm), "-D", "--defined-only", library], stdout=subprocess.PIPE, universal_newlines=True, check=True)
    return {fields[2]: fields[1] in "TtiI" for fields in map(str.split, done.stdout.splitlines()) if len(fields) == 3}


def main():
    compiler, nm, client, softgpu = sys.argv[1:5]
    functions, _, _ = header.read(compiler)
    kinds = calls.Table(functions, sys.argv[5:]).coverage()
    client, softgpu = defined(nm, client), defined(nm, softgpu)
    wrong, counts, implemented = [], {}, 0
    print(f"{'function':56} {'forwarding client':16} software GPU")
    for symbol in sorted(functions):
        kind = kinds.get(symbol, "not supported")
        if client.get(symbol) != (kind != "not supported"):
            wrong.append(f"{symbol}: the table says {kind}, the library "
                         + {True: "defines it", False: "does not", None: "does not export it"}[client.get(symbol)])
        counts[kind] = counts.get(kind, 0) + 1
        implemented += softgpu.get(symbol, False)
        print(f"{symbol:56} {kind:16} {'implemented' if softgpu.get(symbol) else 'not supported'}")
    print(f"\n{len(functions)} functions. Forwarding client: "
          + ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in ("forwarded", "local", "hand-written", "not supported"))
          + f". Software GPU: {implemented} implemented.")
    print_groups(functions, kinds, softgpu)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
