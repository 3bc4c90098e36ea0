# SPDX-License-Identifier: BSD-3-Clause
"""The constants of mpi.h.in, for Fortran."""
import re


class Constant:
    def __init__(self, name, value, handle=None):
        self.name, self.value, self.handle = name, value, handle  # handle: "Comm", "Datatype"..., or None


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    constants = {}
    for line in text.splitlines():
        handle = re.match(r"#define (MPI_\w+) \(\(MPI_(\w+)\)(0x[0-9a-f]+)\)", line)
        number = re.match(r"(?:#define (MPI_\w+)|\t(MPIX?_\w+) =) (-?\w+),?(?: /\*.*)?$", line)
        if handle:
            constants[handle.group(1)] = Constant(handle.group(1), int(handle.group(3), 16), handle.group(2))
        elif number:
            name, value = number.group(1) or number.group(2), number.group(3)
            if value in constants:
                constants[name] = Constant(name, constants[value].value, constants[value].handle)
            elif re.match(r"-?(0x[0-9a-f]+|\d+)$", value):
                constants[name] = Constant(name, int(value, 0))
    without = r"MPI_(T_|F_|ABI_OLD|COMBINER_(HVECTOR|HINDEXED|STRUCT)_INTEGER$)"
    wanted = [c for c in constants.values() if not re.match(without, c.name)]
    for c in wanted:
        if c.name.startswith("MPI_MAX_"):
            c.value -= 1  # Fortran's strings have no terminating null
    return wanted
