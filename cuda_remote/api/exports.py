# SPDX-License-Identifier: BSD-3-Clause
"""exports.py COMPILER: writes exports.c, see exports.h.

A weak definition of every function of the toolkit's headers, the table behind cuGetProcAddress, and the names of CUresult.
"""
import sys

import header

# Defined beside the generated file, the same for every libcuda.so.1.
OWN = ("cuGetProcAddress", "cuGetProcAddress_v2", "cuGetErrorName", "cuGetErrorString")


def weak_definition(index, function):
    unused = "".join(f"\t(void)({p.name});\n" for p in function.parameters)
    return (f'__attribute__((weak, visibility("default"))) CUresult {function.symbol}({function.signature()})\n'
            f"{{\n{unused}\treturn rc_exports_missing({index});\n}}\n")


def main():
    functions, versions, errors = header.read(sys.argv[1])
    table = header.by_version(functions, versions)
    out = ["/* Generated from the CUDA toolkit's headers by cuda_remote/api/exports.py: do not edit. */",
           '#include "cuda_remote/api/exports.h"',
           "#include <cudaTypedefs.h>", "#include <cudaProfiler.h>", "#include <cudaProfilerTypedefs.h>",
           '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"', ""]
    out.append(f"const unsigned rc_exports_count = {len(functions)};")
    out.append("const char *const rc_exports_names[] = {")
    out += [f'\t"{symbol}",' for symbol in functions]
    out += ["};", ""]
    out += [weak_definition(i, f) for i, f in enumerate(functions.values()) if f.symbol not in OWN]
    out.append(f"const size_t rc_exports_entries_count = {len(table)};")
    out.append("const struct rc_exports_entry rc_exports_entries[] = {")
    for base, per_thread, version, symbol in table:
        out.append(f'\t{{ "{base}", {version}, {int(bool(per_thread))}, (void (*)(void)){symbol} }},')
    out += ["};", ""]
    # The pairing by order is checked where it can be: the function's type must be the typedef's.
    for base, per_thread, version, symbol in table:
        out.append(f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{symbol}), PFN_{base}_v{version}{per_thread}),"
                   f' "{symbol}");')
    out += ["", f"const size_t rc_exports_errors_count = {len(errors)};",
            "const struct rc_exports_error rc_exports_errors[] = {"]
    out += [f'\t{{ {name}, "{name}" }},' for name, value in sorted(errors, key=lambda e: e[1])]
    out += ["};", ""]
    print("\n".join(out))


if __name__ == "__main__":
    main()
