# SPDX-License-Identifier: BSD-3-Clause
"""coverage.py COMPILER NM CLIENT SOFTGPU TABLE...: every driver function and what becomes of it.

For the forwarding client as the table of calls says, checked against the library: what the table names must be defined there, what
it does not name must not. For the software GPU by its library: a weak definition is one that nobody replaced.
"""
import shlex
import subprocess
import sys

import calls
import header


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
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
