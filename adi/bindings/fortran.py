# SPDX-License-Identifier: BSD-3-Clause
"""Generates the Fortran stubs: C functions with the names and arguments of gfortran's external procedures. mpif.h, the module
mpi and the module mpi_f08 all call them (adi/fortran/README.md)."""
import re

from header import WARNING, wrap
from table import HANDLES, PLAIN_HANDLES, without

# Written by hand in adi/fortran/.
HAND = set("""
    Attr_delete Attr_get Attr_put Buffer_detach Comm_create_errhandler Comm_create_keyval Comm_detach_buffer
    Comm_get_attr Comm_set_attr Comm_spawn Comm_spawn_multiple File_create_errhandler Grequest_start Info_create_env
    Info_get Info_get_string Info_get_valuelen Init Init_thread Keyval_create Keyval_free Op_create
    Op_create_c Op_free Pcontrol Session_create_errhandler Session_detach_buffer Session_get_nth_pset
    Type_create_keyval Type_get_attr Type_set_attr Win_create_errhandler Win_create_keyval Win_get_attr Win_set_attr Wtick
    Wtime Aint_add Aint_diff
""".split())
# Not in Fortran's bindings, or (data representations of files) not implemented in C either.
ABSENT = {"Abi_get_fortran_booleans", "Abi_set_fortran_booleans", "Register_datarep", "Register_datarep_c"}
SHORT = {"ctype": "type", "otype": "type", "info!": "info"}  # kinds of the same handle
CONVERT = {"errhandler": "Errhandler", "comm": "Comm", "group": "Group", "type": "Type", "op": "Op", "info": "Info", "win": "Win",
           "session": "Session", "request": "Request", "message": "Message", "file": "File"}
# Functions that need the addresses of buffers only: no section is copied for them.
ADDRESSES = ("Fetch_and_op", "Compare_and_swap", "Get_address", "Win_detach")
BUFFERS = ("in", "out")
# Lengths of arrays of handles; count or incount is the default.
LENGTHS = {"array_of_datatypes": "*max_datatypes"}


def in_fortran(function):
    """Whether Fortran has the function."""
    return function.chapter != "tool" and function.name not in ABSENT and not function.name.endswith(("_toint", "_fromint"))


def keeps_buffer(function):
    """Whether a buffer is used after the function has returned: mpi_f08 passes its descriptor (adi/fortran/sections.h)."""
    kinds = [p.kind for p in function.parameters]
    later = "request*" in kinds or function.chapter == "onesided" or "attach" in function.name or function.name == "Get_address"
    return later and function.chapter != "io" and any(kind in BUFFERS for kind in kinds)


def handle_kind(kind):
    """'ctype' -> 'type'; None if the kind is no handle."""
    kind = SHORT.get(kind, kind)
    kind = kind[3:] if kind.startswith("any") else kind
    return kind if kind in CONVERT else None


def c_type(kind):
    return (HANDLES.get(kind) or (PLAIN_HANDLES.get(kind),))[0]


class Stub:
    """One stub: parameters, hidden lengths of strings, locals, what precedes the call, arguments, what follows."""

    def __init__(self, function, large):
        self.function, self.large = function, large
        self.parameters, self.lengths, self.before, self.arguments, self.after, self.end = [], [], [], [], [], []
        self.c_parameters = function.c_parameters(large)
        for p in self.c_parameters:
            self.add(p)

    def add(self, p):
        kind, name = p.kind, p.name
        base = without(kind.rstrip("*&"), "[]")
        if kind in ("in", "out"):
            self.simple(f"void *{name}", f"hrf_address({name})")
        elif handle_kind(kind):
            self.simple(f"MPI_Fint *{name}", f"hrf_{handle_kind(kind)}(*{name})")
        elif kind in ("types", "requests", "infos") or kind.endswith("[]") and handle_kind(base):
            self.handles(p, without(base, "s"), kind.endswith("[]"))
        elif kind[-1] in "*&" and handle_kind(base):
            self.handle_result(p, handle_kind(base), c_type(base))
        elif kind in ("status*", "status[]", "statusin"):
            self.simple(f"MPI_Fint *{name}", f"hrf_{'statuses' if kind == 'status[]' else 'status'}({name})")
        elif kind in ("string", "chars"):
            self.text(p)
        elif kind == "base*":
            self.simple(f"void *{name}", name)
        elif kind == "bool":
            self.simple(f"MPI_Fint *{name}", f"*{name} != 0")
        elif kind == "bool*":
            self.simple(f"MPI_Fint *{name}", name)
            self.after.append(f"*{name} = *{name} != 0;")
        elif kind in ("index*", "index[]"):
            self.index(p)
        elif "weights" in name or "errcodes" in name:
            self.simple(f"MPI_Fint *{name}", f"hrf_integers({name})")
        else:
            self.number(p)

    def simple(self, parameter, argument):
        self.parameters.append(parameter)
        self.arguments.append(argument)

    def number(self, p):
        """Numbers by value and arrays and results of numbers have the same representation in both languages."""
        kind = p.types[self.large]
        if kind.endswith("*") or "[" in kind:
            kind = re.sub(r"^const |\s*\[\]$|\s*\*$", "", kind)
            if p.kind == "ranges":
                self.simple(f"MPI_Fint (*{p.name})[3]", p.name)
            else:
                self.simple(f"{kind} *{p.name}", p.name)
        else:
            self.simple(f"{kind} *{p.name}", f"*{p.name}")

    def handle_result(self, p, kind, c):
        start = f"hrf_{kind}(*{p.name})" if p.kind.endswith("&") else f"hrf_{kind}(0)"
        self.parameters.append(f"MPI_Fint *{p.name}")
        self.before.append(f"{c} {p.name}_c = {start};")
        self.arguments.append(f"&{p.name}_c")
        self.after.append(f"*{p.name} = PMPI_{CONVERT[kind]}_toint({p.name}_c);")

    def handles(self, p, kind, written):
        """An array of handles is converted to one on the stack, or in memory of malloc if it is long."""
        names = [q.name for q in self.function.parameters]
        length = LENGTHS.get(p.name) or ("*count" if "count" in names else "*incount" if "incount" in names else None)
        if not length:
            length = f"hrf_peers(hrf_comm(*comm), {int('eighbor' in self.function.name)}, {int(p.name == 'sendtypes')})"
            if p.name == "sendtypes":
                length = f"hrf_address(sendbuf) == MPI_IN_PLACE ? 0 : {length}"
        kind = handle_kind(kind)
        self.parameters.append(f"MPI_Fint *{p.name}")
        self.before += [f"struct hrf_handles {p.name}_c;",
                        f"hrf_start(&{p.name}_c, {length});",
                        f"for (int i = 0; i < {p.name}_c.n; i++)",
                        f"\t{p.name}_c.handle[i] = {'NULL' if p.name in LENGTHS else f'hrf_{kind}({p.name}[i])'};"]
        self.arguments.append(f"(void *){p.name}_c.handle")
        if written:
            self.end += [f"for (int i = 0; i < {p.name}_c.n; i++)"]
            if p.name in LENGTHS:
                self.end += [f"\tif ({p.name}_c.handle[i])",
                             f"\t\t{p.name}[i] = PMPI_{CONVERT[kind]}_toint({p.name}_c.handle[i]);"]
            else:
                self.end += [f"\t{p.name}[i] = PMPI_{CONVERT[kind]}_toint({p.name}_c.handle[i]);"]
        self.end.append(f"hrf_end(&{p.name}_c);")

    def text(self, p):
        self.parameters.append(f"char *{p.name}")
        self.lengths.append(f"size_t {p.name}_length")
        if p.kind == "string":
            convert = "hrf_key" if p.name in ("key", "value") else "hrf_string"
            self.before.append(f"char *{p.name}_c = {convert}({p.name}, {p.name}_length);")
            self.end.append(f"free({p.name}_c);")
        else:
            self.before.append(f"char {p.name}_c[HRF_TEXT_MAX] = \"\";")
            self.after.append(f"hrf_give({p.name}_c, {p.name}, {p.name}_length);")
        self.arguments.append(f"{p.name}_c")

    def index(self, p):
        """Indices start at 1 in Fortran."""
        self.simple(f"MPI_Fint *{p.name}", p.name)
        if p.kind == "index*":
            self.after.append(f"*{p.name} += *{p.name} >= 0;")
        else:
            self.after += ["for (int i = 0; i < *outcount; i++)", f"\t{p.name}[i]++;"]

    def section_lines(self, name):
        """The stub of mpi_f08 for a function that keeps a buffer. It calls the stub of mpif.h."""
        parameters = self.c_parameters
        names = [p.name for p in parameters]
        types = dict(zip(names, self.parameters))
        arguments = {n: n for n in names}
        start, before, end = [], [], []
        for i, p in enumerate(parameters):
            if p.kind not in BUFFERS:
                continue
            types[p.name] = f"CFI_cdesc_t *{p.name}"
            arguments[p.name] = f"{p.name}->base_addr"
            if self.function.name in ADDRESSES:
                continue
            if not self.described(i):
                before += self.section_check(p, f"hrf_contiguous({p.name})")
                continue
            count, datatype = names[i + 1:i + 3]
            before += self.section_check(p, f"hrf_section(&{p.name}_c, {p.name}, *{count}, *{datatype})")
            start.append(f"struct hrf_section {p.name}_c = {{ .made = MPI_DATATYPE_NULL }};")
            end.append(f"hrf_section_end(&{p.name}_c);")
            arguments.update({p.name: f"{p.name}_c.address", datatype: f"&{p.name}_c.datatype",
                              count: f"&{p.name}_c.count" + "_c" * self.large})
        out = wrap(f"void pmpi_{name.lower()}_f08ts_({', '.join(list(types.values()) + ['MPI_Fint *ierror'])})") + ["{"]
        out += ["\t" + line for line in start]
        if before:
            out += ["\tint class = MPI_SUCCESS;"] + ["\t" + line for line in before]
            out += ["\tif (class == MPI_SUCCESS)"]
        call = f"pmpi_{name.lower()}_({', '.join([arguments[n] for n in names] + ['ierror'])});"
        out += wrap(call, "\t\t" if before else "\t")
        if before:
            kinds = [p.kind for p in parameters]
            objects = [kind if kind in kinds else "NULL" for kind in ("comm", "win")]
            out += ["\telse", f"\t\thrf_return(hrf_section_error(class, {', '.join(objects)}));"]
        return out + ["\t" + line for line in end] + ["}"]

    def section_check(self, p, call):
        """Checks a buffer, unless MPI ignores it in this process."""
        lines = ["if (class == MPI_SUCCESS)", f"\tclass = {call};"]
        if any(other.name == "root" for other in self.c_parameters):
            name = self.function.name.lower()
            of_root = {"sendbuf": "scatter" in name, "recvbuf": "scatter" not in name}.get(p.name)
            side = {True: "HRF_OF_ROOT", False: "HRF_OF_OTHERS", None: "HRF_OF_ALL"}[of_root]
            lines += [f"if (class != MPI_SUCCESS && hrf_ignored(comm, root, {side}))", "\tclass = MPI_SUCCESS;"]
        return lines

    def described(self, i):
        """Whether parameter i is a buffer of a count of elements of a datatype, which another datatype can replace."""
        kinds = [p.kind for p in self.c_parameters[i:i + 3]]
        if len(kinds) < 3 or kinds[1] not in ("count", "amount") or kinds[2] not in ("ctype", "otype", "anytype"):
            return False
        if self.function.chapter != "collective":
            return True
        # Blocks for several processes and operands of reductions keep their datatype.
        name, buffer = self.function.name.lower(), self.c_parameters[i].name
        several = {"sendbuf": ("scatter", "alltoall"), "recvbuf": ("gather", "alltoall")}.get(buffer, ())
        return not any(p.kind == "op" for p in self.c_parameters) and not any(word in name for word in several)

    def lines(self, name):
        parameters = ", ".join(self.parameters + ["MPI_Fint *ierror"] + self.lengths)
        out = wrap(f"void pmpi_{name.lower()}_({parameters})") + ["{"]
        out += ["\t" + line for line in self.before]
        out += wrap(f"int class = PMPI_{name}({', '.join(self.arguments)});", "\t")
        if self.after:
            out += ["\tif (class == MPI_SUCCESS) {"] + ["\t\t" + line for line in self.after] + ["\t}"]
        out += ["\t" + line for line in self.end]
        return out + ["\thrf_return(class);", "}"]


def keep_on_error(stub):
    """Requests are converted back after an error too: MPI_Waitall frees some and reports an error of others."""
    name = stub.function.name
    if re.match(r"(Wait|Test|Cancel|Start)", name):
        kept = [line for line in stub.after if "Request_toint" in line]
        stub.after = [line for line in stub.after if line not in kept]
        stub.end = kept + stub.end


def stubs(functions):
    """{file name: text}, one file for each chapter."""
    files = {}
    for function in functions:
        if not in_fortran(function) or "hand" in function.flags or function.name in HAND:
            continue
        for name, large in function.variants():
            stub = Stub(function, large)
            keep_on_error(stub)
            prototype = " ".join(stub.lines(name)[:stub.lines(name).index("{")]).replace("\t", "")
            text = wrap(prototype + ";") + stub.lines(name) + [f"HRF_NAMES({name.lower()});", ""]
            if keeps_buffer(function):
                lines = stub.section_lines(name)
                text += wrap(" ".join(lines[:lines.index("{")]).replace("\t", "") + ";") + lines
                text += [f"HRF_NAME(mpi_{name.lower()}_f08ts_, pmpi_{name.lower()}_f08ts_);", ""]
            files.setdefault(function.chapter, []).extend(text)
    head = ["/* SPDX-License-Identifier: BSD-3-Clause */"]
    return {f"stubs_{chapter}.c": "\n".join(head + [f"/* Fortran stubs: {chapter}. {WARNING} */",
                                                    '#include "adi/fortran/sections.h"', ""] + text)
            for chapter, text in files.items()}
