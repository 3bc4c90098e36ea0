# SPDX-License-Identifier: BSD-3-Clause
"""Generates the C bindings: PMPI_Name, PMPI_Name_c, and the weak names MPI_Name."""
from header import WARNING, wrap
from table import HANDLES

ARRAYS = ("amounts", "displs", "aints", "addresses")
OBJECTS = ("comm", "win", "session")  # they have error handlers


def given_handler(function):
    """The errhandler parameter of a function that creates an object with it, and the kind of that object; else None."""
    made = next((kind for kind in OBJECTS for p in function.parameters if p.kind == kind + "*"), None)
    handler = next((p for p in function.parameters if p.kind == "errhandler"), None)
    return (handler, f"ADI_{made.upper()}") if made and handler else None


class Body:
    """The parts of one binding: locals, checks, starting values, arguments of the implementation, and what follows its
    call."""

    def __init__(self, function, large):
        self.locals, self.checks, self.starts, self.arguments, self.after = [], [], [], [], []
        self.fail, self.object = "adi_fail", "NULL"
        # The object with the error handler, or a given handler, comes first, so that it reports errors of all other arguments.
        parameters = function.parameters
        self.names = [p.name for p in parameters]
        main = next((p for kind in OBJECTS for p in parameters if p.kind == kind), None)
        if main:
            self.take(main)
            self.object = f"(struct adi_object *){main.name}_at"
        given = given_handler(function)
        if given:
            self.take(given[0], given[1])
            main = given[0]
            self.fail, self.object = "adi_fail_given", f"{main.name}_at"
        freed = next((p for kind in OBJECTS for p in parameters if p.kind == kind + "&"), None)
        if freed:
            self.object = f"{freed.name} ? adi_object_at(*{freed.name}, ADI_{freed.kind[:-1].upper()}) : NULL"
        for p in parameters:
            if p is main:
                continue
            if p.kind in HANDLES:
                self.take(p)
            elif p.kind == "count":
                self.checks.append(f'adi_bind_count({p.name}, "{p.name}")')
            elif p.checked and "unchecked" not in function.flags and not (p.only_large and not large):
                self.checks.append(f'adi_bind_pointer({p.name}, "{p.name}")')
        for p in parameters:
            self.arguments.append(self.argument(p, large))
        if "large" in function.flags:
            self.arguments.append("true" if large else "false")

    def take(self, p, made=None):
        """made: the kind of object that the function creates with this error handler."""
        _, struct, take = HANDLES[p.kind]
        self.locals.append(f"struct {struct} *{p.name}_at = NULL;")
        first = "op, " if p.kind == "otype" else ""
        if made:
            take, first = "adi_bind_given", made + ", "
        if p.kind == "ctype" and self.rank_of(p):
            take, first = "adi_bind_message_type", self.rank_of(p) + ", "
        self.checks.append(f'{take}({first}{p.name}, "{p.name}", &{p.name}_at)')

    def rank_of(self, p):
        """The parameter with the rank of a message of this datatype. None: there is none, or there are two."""
        ranks = {"sendtype": ["dest"], "recvtype": ["source"]}.get(p.name, ["dest", "source"])
        found = [name for name in ranks if name in self.names]
        return found[0] if len(found) == 1 else None

    def argument(self, p, large):
        """The argument of the implementation, in terms of the parameters."""
        if p.only_large and not large:
            return "NULL" if "*" in p.types[1] or "[" in p.types[1] else "0"
        if p.kind in HANDLES:
            return p.name + "_at"
        if p.kind in ARRAYS:
            return f"(struct adi_array){{ {p.name}, sizeof *{p.name} }}"
        if p.kind in ("aint*", "aplace*"):
            return p.name if large else f"(MPI_Count *){p.name}"
        if p.kind == "unit*" and large:
            return f"(MPI_Count *){p.name}"
        if p.kind in ("amount*", "query*", "unit*", "place*") and not large:
            self.locals.append(f"MPI_Count {p.name}_wide = 0;")
            if p.kind == "place*":
                self.starts.append(f"{p.name}_wide = *{p.name};")
            give = "adi_give_query" if p.kind == "query*" else "adi_give_int"
            self.after.append(f'{give}({p.name}_wide, {p.name}, "{p.name}")')
            return f"&{p.name}_wide"
        return p.name


def alias(name):
    return f"ADI_PROFILED({name});"


def binding(function, name, large):
    """The text of one function."""
    body = Body(function, large)
    anytime, silent = "anytime" in function.flags, "silent" in function.flags
    lines = wrap(function.prototype("PMPI_", name, large)) + ["{"]
    lines += ["\t" + local for local in body.locals]
    if anytime:
        lines += ["\tint class;", "\tadi_lock();"]
    else:
        lines += ["\tint class = adi_enter();", "\tif (!ADI_LIKELY(class == MPI_SUCCESS))",
                  f'\t\treturn {"class" if silent else f"""adi_fail(NULL, "{name}", class)"""};']
    call = f"{function.implementation}({', '.join(body.arguments)})"
    steps = [f"TRY({check});" for check in body.checks] + body.starts
    for step in steps + [f"TRY({step});" for step in [call] + body.after]:
        lines += wrap(step, "\t")
    end = f"adi_bind_end_{'anytime' if anytime else 'running'}"
    if silent:
        lines += ["end:", f"\t{end}();", "\treturn class;", "}"]
    else:
        lines += ["end:", "\tif (!ADI_LIKELY(class == MPI_SUCCESS))", f'\t\tclass = {body.fail}({body.object}, "{name}", class);',
                  f"\t{end}();", "\treturn class;", "}"]
    return "\n".join(lines + [alias(name), ""])


def unsupported(function, name, large):
    """A function without an implementation. The error goes to the object whose error handler is meant, if it is valid."""
    main = next((p for kind in OBJECTS for p in function.parameters if p.kind == kind), None)
    lines = wrap(function.prototype("PMPI_", name, large)) + ["{"]
    if "silent" in function.flags:
        lines += [f'\treturn adi_bind_unsupported_silent("{name}");', "}", alias(name), ""]
        return "\n".join(lines)
    if main:
        _, struct, take = HANDLES[main.kind]
        lines += [f"\tstruct {struct} *{main.name}_at = NULL;"]
    lines += ["\tint class = adi_enter();", "\tif (class != MPI_SUCCESS)", f'\t\treturn adi_fail(NULL, "{name}", class);']
    if main:
        lines += [f'\tTRY({take}({main.name}, "{main.name}", &{main.name}_at));']
    lines += ["\tclass = adi_bind_unsupported();"] + (["end:"] if main else [])
    place = f"(struct adi_object *){main.name}_at" if main else "NULL"
    lines += [f'\tclass = adi_fail({place}, "{name}", class);', "\tadi_bind_end_running();", "\treturn class;", "}"]
    return "\n".join(lines + [alias(name), ""])


def c_file(purpose, parts, unused=False):
    lines = ["/* SPDX-License-Identifier: BSD-3-Clause */", f"/* {purpose} {WARNING} */", '#include "adi/bindings/bind.h"', ""]
    if unused:
        lines += ['#pragma GCC diagnostic ignored "-Wunused-parameter"', ""]
    return "\n".join(lines + parts)


def c_files(functions, sources):
    """{file name: text} of all bindings. What the sources bind by hand is left out; so are functions that are bound by hand,
    are missing, and have no way to fail. Every chapter has a file, even if it is empty, because the makefile names it."""
    parts, missing = {function.chapter: [] for function in functions}, []
    for function in functions:
        for name, large in function.variants():
            if name in sources.bindings:
                continue
            if sources.covers(function, name):
                parts[function.chapter].append(binding(function, name, large))
            elif function.result == "int" and not name.endswith("_toint"):
                missing.append(unsupported(function, name, large))
    files = {chapter + ".c": c_file(f"Bindings: {chapter}.", text) for chapter, text in parts.items()}
    files["unsupported.c"] = c_file("Functions that are not implemented.", missing, unused=True)
    return files
