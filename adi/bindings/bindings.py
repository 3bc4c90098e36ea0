# SPDX-License-Identifier: BSD-3-Clause
"""bindings.py OUTPUT SOURCE: reads SOURCE/adi/bindings/*.table and writes OUTPUT/adi/mpi.h,
OUTPUT/adi/bindings/functions.h and OUTPUT/adi/bindings/*.c.
bindings.py --fortran OUTPUT SOURCE: writes the Fortran stubs, mpif.h and modules to OUTPUT/adi/fortran.
bindings.py --coverage SOURCE: prints which functions are not implemented, as a Markdown table.
"""
import os
import sys

sys.dont_write_bytecode = True
import c_bindings  # noqa: E402
import coverage  # noqa: E402
import fortran  # noqa: E402
import header  # noqa: E402
import modules  # noqa: E402
import table  # noqa: E402


def write(path, text):
    """Leaves a file alone that has this text already, so that make compiles less."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def generate(output, source):
    folder = os.path.join(source, "adi", "bindings")
    functions = table.read_tables(folder)
    sources = table.Sources(source)
    sources.warn(functions)
    write(os.path.join(output, "adi", "mpi.h"), header.mpi_h(functions, os.path.join(source, "adi", "mpi.h.in")))
    bindings = os.path.join(output, "adi", "bindings")
    write(os.path.join(bindings, "functions.h"), header.functions_h(functions))
    for name, text in c_bindings.c_files(functions, sources).items():
        write(os.path.join(bindings, name), text)


def generate_fortran(output, source):
    functions = table.read_tables(os.path.join(source, "adi", "bindings"))
    template = os.path.join(source, "adi", "mpi.h.in")
    with open(os.path.join(source, "adi", "fortran", "callbacks.f90.in"), encoding="utf-8") as file:
        callbacks = file.read()
    folder = os.path.join(output, "adi", "fortran")
    for name, text in fortran.stubs(functions).items():
        write(os.path.join(folder, name), text)
    write(os.path.join(folder, "mpif.h"), modules.mpif_h(template))
    write(os.path.join(folder, "mpi.f90"), modules.mpi_module(functions, template))
    write(os.path.join(folder, "mpi_f08.f90"), modules.f08_module(functions, template, callbacks))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--fortran":
        generate_fortran(sys.argv[2], sys.argv[3])
    elif len(sys.argv) != 3:
        sys.exit(__doc__)
    elif sys.argv[1] == "--coverage":
        source = sys.argv[2]
        functions = table.read_tables(os.path.join(source, "adi", "bindings"))
        print(coverage.report(functions, table.Sources(source)), end="")
    else:
        generate(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
