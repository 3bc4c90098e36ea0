# SPDX-License-Identifier: BSD-3-Clause
"""The tables of MPI functions (*.table; README.md has the notation): kinds of parameters, and reading."""
import glob
import os
import re
import sys

HANDLES = {
    # kind: (type of the handle, struct behind it, function that finds it)
    "comm": ("MPI_Comm", "adi_comm", "adi_comm_take"),
    "group": ("MPI_Group", "adi_group", "adi_group_take"),
    "type": ("MPI_Datatype", "adi_type", "adi_type_take"),
    "ctype": ("MPI_Datatype", "adi_type", "adi_type_take_committed"),
    "otype": ("MPI_Datatype", "adi_type", "adi_bind_origin"),
    "op": ("MPI_Op", "adi_op", "adi_op_take"),
    "errhandler": ("MPI_Errhandler", "adi_errhandler", "adi_errhandler_take"),
    "info": ("MPI_Info", "adi_info", "adi_bind_info"),
    "info!": ("MPI_Info", "adi_info", "adi_bind_info_not_null"),
    "win": ("MPI_Win", "adi_win", "adi_win_take"),
    "session": ("MPI_Session", "adi_session", "adi_session_take"),
}
# Handles that reach the implementation as they are.
PLAIN_HANDLES = {
    "request": "MPI_Request", "message": "MPI_Message", "file": "MPI_File", "anycomm": "MPI_Comm", "anygroup": "MPI_Group",
    "anytype": "MPI_Datatype", "anyop": "MPI_Op", "anyerrhandler": "MPI_Errhandler", "anyinfo": "MPI_Info", "anywin": "MPI_Win",
    "anysession": "MPI_Session", "anyrequest": "MPI_Request", "anymessage": "MPI_Message", "anyfile": "MPI_File",
}
# Parameters that differ between MPI_Name and MPI_Name_c: (type in MPI_Name, type in MPI_Name_c).
LARGE = {
    "count": ("int", "MPI_Count"),
    "amount": ("int", "MPI_Count"),
    "aint": ("MPI_Aint", "MPI_Count"),
    "unit": ("int", "MPI_Aint"),
    "amounts": ("const int []", "const MPI_Count []"),
    "displs": ("const int []", "const MPI_Aint []"),
    "aints": ("const MPI_Aint []", "const MPI_Count []"),
    "amount*": ("int *", "MPI_Count *"),
    "query*": ("int *", "MPI_Count *"),
    "aint*": ("MPI_Aint *", "MPI_Count *"),
    "unit*": ("int *", "MPI_Aint *"),
    "place*": ("int *", "MPI_Count *"),
    "aplace*": ("MPI_Aint *", "MPI_Count *"),
}
# Everything else: the type in C.
PLAIN = {
    "in": "const void *", "out": "void *", "data": "void *", "state": "void *", "attribute": "void *", "attribute*": "void *",
    "base*": "void *", "int": "int", "bool": "int", "index": "int", "disp": "MPI_Aint", "address": "MPI_Aint",
    "offset": "MPI_Offset", "addresses": "const MPI_Aint []", "string": "const char *", "chars": "char *",
    "status": "MPI_Status", "statusin": "const MPI_Status *", "ints": "const int []", "bools": "const int []",
    "weights": "const int *",  # gcc would warn of MPI_UNWEIGHTED, which is no array
    "types": "const MPI_Datatype []", "requests": "const MPI_Request []", "infos": "const MPI_Info []",
    "ranges": "int [][3]", "argv": "char *[]", "argvs": "char **[]", "char***": "char ***",
}
# Pointers to these are not checked.
UNCHECKED = ("in", "out", "data", "state", "attribute", "status*", "statusin", "argv", "argvs", "ranges", "char***")
FLAGS = ("anytime", "hand", "silent", "unchecked", "large", "deprecated")
EVERY = ("anytime", "silent", "unchecked")


def fail(place, message):
    sys.exit(f"{place}: {message}")


def without(text, suffix):
    return text[:-len(suffix)] if text.endswith(suffix) else text


class Parameter:
    def __init__(self, place, text):
        kind, _, name = text.strip().rpartition(" ")
        if not kind:
            kind, name = name, ""
        self.name = name
        self.only_large = kind.startswith("+")
        self.optional = kind.endswith("?")
        self.kind = kind.strip("+?")
        self.types = self.find_types()
        if not self.types:
            fail(place, f"unknown kind '{self.kind}' of parameter '{name}'")

    def find_types(self):
        """The types in C of the function and of its large variant."""
        kind = self.kind
        if kind in LARGE:
            return LARGE[kind]
        if kind in HANDLES:
            return HANDLES[kind][0], HANDLES[kind][0]
        if kind in PLAIN_HANDLES:
            return PLAIN_HANDLES[kind], PLAIN_HANDLES[kind]
        if kind in PLAIN:
            return PLAIN[kind], PLAIN[kind]
        if kind == "...":
            return "...", "..."
        base, suffix = re.match(r"([\w!]+)(\*?|&|\[\])$", kind).groups()
        if base[0].isupper():
            base = "MPI_" + base
        else:
            base = (HANDLES.get(base) or (PLAIN_HANDLES.get(base),))[0] or PLAIN.get(base)
        if not base or not suffix and not base.startswith("MPI_"):
            return None
        text = base + {"": "", "*": " *", "&": " *", "[]": " []"}[suffix]
        return text, text

    @property
    def differs(self):
        return self.only_large or self.types[0] != self.types[1]

    @property
    def is_function(self):
        return self.kind.rstrip("*").endswith(("_function", "_function_c"))

    @property
    def is_array(self):
        return "[" in self.types[0] or self.kind in ("status[]", "weights")

    @property
    def checked(self):
        """Whether the binding checks that the pointer is not NULL."""
        pointer = self.types[0].endswith("*") and not self.is_array
        return pointer and not (self.optional or self.is_function or self.kind in UNCHECKED)

    def c(self, large):
        """The parameter's declaration in the C binding."""
        return declare(self.types[large], self.name)

    def implementation(self):
        """Its type in the implementation."""
        if self.kind in HANDLES:
            return f"struct {HANDLES[self.kind][1]} *"
        if self.kind in ("amounts", "displs", "aints", "addresses"):
            return "struct adi_array "
        if self.kind == "disp":
            return "MPI_Count"
        if self.kind in LARGE:
            return "MPI_Count *" if self.kind.endswith("*") else "MPI_Count"
        return self.types[1]


def declare(kind, name):
    """'const int []', 'x' -> 'const int x[]'."""
    if kind == "...":
        return kind
    match = re.match(r"(.*?)\s*((?:\[\d*\])*)$", kind)
    base = match.group(1)
    return f"{base}{'' if base.endswith('*') or not name else ' '}{name}{match.group(2)}"


class Function:
    """An entry of a table. It has a large variant (MPI_Name_c) if a parameter differs in it."""

    def __init__(self, place, chapter, head, parameters, every):
        words = head.split()
        self.place, self.chapter, self.name = place, chapter, words.pop(0)
        self.flags, self.result, self.alias = set(every), "int", None
        while words:
            word = words.pop(0)
            if word == "returns" and words:
                self.result = words.pop(0)
            elif word == "as" and words:
                self.alias = words.pop(0)
            elif word in FLAGS:
                self.flags.add(word)
            else:
                fail(place, f"{self.name}: unknown word '{word}'")
        self.parameters = [Parameter(place, text) for text in parameters.split(",")] if parameters else []
        self.has_large = "hand" not in self.flags and any(parameter.differs for parameter in self.parameters)
        self.implementation = "mpi_" + re.sub("_c$", "", self.alias or self.name).lower()

    def variants(self):
        """(name, large?) of the C functions of this entry."""
        return [(self.name, 0)] + ([(self.name + "_c", 1)] if self.has_large else [])

    def c_parameters(self, large):
        return [p for p in self.parameters if large or not p.only_large]

    def prototype(self, prefix, name, large):
        parameters = ", ".join(p.c(large) for p in self.c_parameters(large)) or "void"
        result = self.result + ("" if self.result.endswith("*") else " ")
        return f"{result}{prefix}{name}({parameters})"

    def implementation_prototype(self):
        parameters = [declare(p.implementation().strip(), p.name) for p in self.parameters]
        parameters = ", ".join(parameters + ["bool large"] * ("large" in self.flags)) or "void"
        return f"int {self.implementation}({parameters})"


def read_table(path):
    """The functions of a table. A line that begins with a tab continues the line before."""
    functions, every, lines = [], [], []
    chapter = os.path.basename(path)[:-len(".table")]
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("\t"):
                lines[-1][1] += " " + line.strip()
            elif line.strip() and not line.startswith("#"):
                lines.append([number, line.strip()])
    for number, line in lines:
        place = f"{path}:{number}"
        if line.startswith("every "):
            every = line.split()[1:]
            if set(every) - set(EVERY):
                fail(place, f"'every' is followed by {', '.join(EVERY)}")
            continue
        head, _, parameters = line.partition(":")
        functions.append(Function(place, chapter, head, parameters, every))
    return functions


def read_tables(folder):
    """All functions, in the order of chapter and name."""
    functions = []
    for path in sorted(glob.glob(os.path.join(folder, "*.table"))):
        functions += read_table(path)
    names = [name for function in functions for name, _ in function.variants()]
    for name in names:
        if names.count(name) > 1:
            fail(folder, f"MPI_{name} is listed twice")
    return functions


class Sources:
    """What the C files of the library define."""

    def __init__(self, folder):
        self.implementations, self.bindings = {}, set()
        for path in sorted(glob.glob(os.path.join(folder, "adi", "*", "*.c"))):
            if os.path.basename(os.path.dirname(path)) == "bindings":
                continue  # generated, if the build folder is the source folder
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for name in re.findall(r"^int (mpi_\w+)\(", text, re.M):
                self.implementations[name] = path
            self.bindings.update(re.findall(r"^[A-Za-z][\w *]*\bPMPI_(\w+)\(", text, re.M))

    def warn(self, functions):
        """Names implementations that no table has a function for, which are typing errors."""
        known = {f.implementation for f in functions if "hand" not in f.flags}
        for name, path in sorted(self.implementations.items()):
            if name not in known:
                print(f"{path}: {name} implements no function of the tables", file=sys.stderr)

    def covers(self, function, name):
        return name in self.bindings or ("hand" not in function.flags and function.implementation in self.implementations)
