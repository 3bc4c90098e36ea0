# SPDX-License-Identifier: BSD-3-Clause
"""Generates mpi.h (mpi.h.in with the declarations of all functions) and functions.h (the implementations)."""
import textwrap

WARNING = "Generated from the tables in adi/bindings by bindings.py: do not edit."


def wrap(text, indent=""):
    """A declaration or statement in lines of at most 110 columns."""
    return textwrap.wrap(text, 110, initial_indent=indent, subsequent_indent=indent + "\t", break_long_words=False,
                         break_on_hyphens=False, expand_tabs=False)


def declarations(functions, prefix):
    lines, chapter = [], None
    for function in functions:
        if function.chapter != chapter:
            chapter = function.chapter
            lines += ["", f"/* {chapter.capitalize()}. */"]
        for name, large in function.variants():
            lines += wrap(function.prototype(prefix, name, large) + ";")
    return "\n".join(lines).lstrip("\n")


def mpi_h(functions, template):
    with open(template, encoding="utf-8") as file:
        text = file.read()
    return text.replace("@MPI@", declarations(functions, "MPI_")).replace("@PMPI@", declarations(functions, "PMPI_"))


def functions_h(functions):
    lines = [
        "/* SPDX-License-Identifier: BSD-3-Clause */",
        "/* The implementations of MPI functions. adi/bindings/README.md says how they are called.", f" * {WARNING} */",
        "#ifndef ADI_BINDINGS_FUNCTIONS_H", "#define ADI_BINDINGS_FUNCTIONS_H", "",
        '#include "adi/core/array.h"', "", "#include <stdbool.h>", "",
        "struct adi_comm;", "struct adi_errhandler;", "struct adi_group;", "struct adi_info;", "struct adi_op;",
        "struct adi_session;", "struct adi_type;", "struct adi_win;",
    ]
    chapter = None
    for function in functions:
        if "hand" in function.flags or function.alias:
            continue
        if function.chapter != chapter:
            chapter = function.chapter
            lines += ["", f"/* {chapter.capitalize()}. */"]
        lines += wrap(function.implementation_prototype() + ";")
    return "\n".join(lines + ["", "#endif", ""])
