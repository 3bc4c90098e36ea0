# SPDX-License-Identifier: BSD-3-Clause
"""calls.py KIND COMPILER TABLE...: reads the table of calls (calls/README.md) and writes one generated file to stdout.

KIND: calls.h (enum rc_call and the arguments on the wire), names.c, driver.h (the functions the worker takes from its
driver), client.c (stubs), server.c (dispatch), wire.txt (the wire format in words, from which door/build.py makes a
hash), fuzz.h (what the fuzz target of the worker's dispatch knows of each call).
"""
import re
import sys

import header
import widths

WARNING = "/* Generated from the table in cuda_remote/api/calls by cuda_remote/api/calls.py: do not edit. */"
ROLES = ("", "out", "in", "new", "alias", "delete", "device", "text")
FIXED_MAX = 112  # RC_CALL_INLINE


def fail(place, message):
    sys.exit(f"{place}: {message}")


class Hidden:
    """A fixed argument that is not a parameter of the function: the length of a text, whether a pointer is not NULL."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    @staticmethod
    def wire_type():
        return "uint32_t"


class Argument:
    """One parameter of a forwarded call with what the table says of it."""

    def __init__(self, place, call, parameter, what):
        self.place, self.call = place, call
        self.parameter, self.name, self.what = parameter, parameter.name, what
        match = re.match(r"(\w*)(\?)?(?:\[(.*)\])?$", what)
        if not match or match.group(1) not in ROLES:
            self.fail(f"'{what}' is not one of {', '.join(role for role in ROLES if role)}")
        self.role, self.optional, self.count = match.group(1), bool(match.group(2)), match.group(3)
        base = re.sub(r"^const ", "", parameter.pointee if parameter.is_pointer else parameter.type)
        self.base = base
        self.kind = widths.HANDLES.get(base)
        self.number = widths.NUMBERED.get(base)
        self.by_value = not self.role and not parameter.is_pointer and base in widths.STRUCTS
        if not self.role:
            self.role = "in" if self.by_value else "handle" if self.kind else "value"
        self.translated = self.role == "in" and base in widths.TRANSLATED
        self.fixed = self.role in ("handle", "value", "new", "alias", "delete", "device")
        self.check_type()

    def fail(self, message):
        fail(self.place, f"{self.call}: parameter {self.name}: {message}")

    def check_type(self):
        """Every type must be listed: a width that is guessed would cut a handle in half without a word."""
        if self.parameter.is_pointer and self.fixed and self.role not in ("new", "alias"):
            self.fail("say what the pointer is (out, in, new)")
        if self.role in ("new", "alias", "delete", "handle"):
            if not self.kind and not (self.number and self.role == "delete"):
                self.fail(f"{self.base} is not a handle of HANDLES in widths.py")
        elif self.role in ("value", "device"):
            if self.base not in widths.WIRE_TYPE:
                self.unknown()
        elif self.role == "text":
            if self.parameter.type != "const char *":
                self.fail(f"{self.parameter.type} is not a text")
        elif self.kind:
            self.fail(f"{self.base} is a handle; {self.role} would show the client the driver's pointer")
        elif self.role == "out" and self.base in widths.TRANSLATED:
            self.fail(f"{self.base} holds handles or devices of the driver; write the call by hand (mode hand)")
        elif self.optional and self.count:
            self.fail("a pointer to several that may be NULL; write the call by hand (mode hand)")
        elif self.base not in widths.WIRE_TYPE and self.base not in widths.STRUCTS:
            if not (self.base == "void" and self.count):
                self.unknown()

    def unknown(self):
        self.fail(f"unknown type {self.base}; add it to widths.py with the width that cuda.h gives it, "
                  "or write the call by hand (mode hand)")

    def wire_type(self):
        return "uint64_t" if self.kind else widths.WIRE_TYPE[self.base]

    def hidden(self):
        """The argument that travels beside the bytes, or None."""
        if self.role == "text":
            return Hidden(f"{self.name}_bytes", f"(uint32_t)bytes_{self.name}")
        if self.role in ("in", "out") and self.optional:
            return Hidden(f"{self.name}_given", f"{self.name} != NULL")
        return None


class Call:
    def __init__(self, place, mode, name, function=None, options=(), what=None):
        self.place, self.mode, self.name, self.function = place, mode, name, function
        self.options = dict(option.split("=", 1) if "=" in option else (option, True) for option in options)
        unknown = set(self.options) - {"ptds", "ptsz", "check", "done", "server", "anywhere", "peer"}
        if unknown:
            fail(place, f"{name}: unknown option {' '.join(sorted(unknown))}")
        self.arguments = []
        if function:
            what = dict(what or {})
            for parameter in function.parameters:
                self.arguments.append(Argument(place, name, parameter, what.pop(parameter.name, "")))
            if what:
                fail(place, f"{name}: no parameter {' '.join(what)}")

    @property
    def twin(self):
        return next((suffix for suffix in ("ptds", "ptsz") if suffix in self.options), None)

    def fixed(self):
        """Fixed arguments, wide ones first: no holes between them."""
        fixed = [a for a in self.arguments if a.fixed] + [h for h in (a.hidden() for a in self.arguments) if h]
        if sum(widths.BYTES[a.wire_type()] for a in fixed) > FIXED_MAX:
            fail(self.place, f"{self.name}: more than {FIXED_MAX} bytes of fixed arguments")
        return sorted(fixed, key=lambda a: -widths.BYTES[a.wire_type()])


class Table:
    def __init__(self, functions, paths):
        self.functions, self.calls, self.local, self.hand, self.use, self.struct = functions, [], [], [], [], []
        self.refuse = []
        for path in paths:
            with open(path, encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    self.line(f"{path}:{number}", line.split("#")[0])
        names = [call.name for call in self.calls] + self.local + self.hand + self.refuse
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            sys.exit(f"more than once in the table: {' '.join(sorted(twice))}")

    def line(self, place, text):
        left, _, right = text.partition(" : ")
        words = left.split()
        if not words:
            return
        mode, names = words[0], words[1:]
        if mode in ("local", "hand", "use", "refuse"):
            for name in names:
                self.known(place, name)
            getattr(self, mode).extend(names)
        elif mode == "struct":
            for name in names:
                if name not in widths.STRUCTS:
                    fail(place, f"{name} is not in STRUCTS of widths.py")
            self.struct.extend(names)
        elif mode == "internal":
            self.calls.append(Call(place, names[0], names[1]))
        elif mode in ("async", "wait", "sync"):
            what = dict(word.split("=", 1) for word in right.split())
            self.calls.append(Call(place, mode, names[0], self.known(place, names[0]), names[1:], what))
        else:
            fail(place, f"unknown mode {mode}")

    def known(self, place, name):
        if name not in self.functions:
            fail(place, f"{name} is not in the toolkit's headers")
        return self.functions[name]

    def driver_functions(self):
        names = set(self.use)
        for call in self.calls:
            if call.function:
                names.add(call.name)
                if "ptds" in call.options:
                    names.add(call.name + "_ptds")
        return sorted(names)

    def destroyer(self, call, argument):
        """The name of the call that destroys what call returns in argument."""
        for other in self.calls:
            if [(a.role, a.base) for a in other.arguments] == [("delete", argument.base)]:
                return other.name
        fail(call.place, f"{call.name}: parameter {argument.name}: no call in the table destroys it")

    def translated(self):
        """The structs whose handles and devices are translated."""
        names = {name for name in self.struct if name in widths.TRANSLATED}
        for call in self.calls:
            if "server" not in call.options:
                names.update(a.base for a in call.arguments if a.translated)
        return sorted(names)

    def structs(self):
        """CUDA's structs that cross the wire."""
        names = set(self.struct)
        for call in self.calls:
            names.update(a.base for a in call.arguments if a.base in widths.STRUCTS)
        return sorted(names)

    def coverage(self):
        """{symbol: 'forwarded' | 'local' | 'hand-written' | 'refused'}; what is missing is not supported."""
        kinds = {name: "local" for name in self.local}
        kinds.update({name: "hand-written" for name in self.hand})
        kinds.update({name: "refused" for name in self.refuse})
        for call in self.calls:
            if call.function:
                kinds[call.name] = "forwarded"
                if call.twin:
                    kinds[f"{call.name}_{call.twin}"] = "forwarded"
        return kinds


def calls_h(table):
    out = [WARNING, "#ifndef RC_API_CALLS_H", "#define RC_API_CALLS_H", "#include <stdint.h>", "", "enum rc_call {",
           "\tRC_CALL_NONE,"]
    out += [f"\tRC_CALL_{call.name}," for call in table.calls]
    out += ["\tRC_CALLS", "};", "", "/* The driver function or internal call of that number. */",
            "extern const char *const rc_call_names[RC_CALLS];",
            "/* 1: the client waits for its answer. */", "extern const unsigned char rc_call_waits[RC_CALLS];", ""]
    for call in table.calls:
        fixed = call.fixed()
        if fixed:
            out.append(f"struct rc_args_{call.name} {{")
            out += [f"\t{a.wire_type()} {a.name};" for a in fixed]
            out.append("} __attribute__((aligned(8)));")
    out.append("#endif")
    return out


def names_c(table):
    out = [WARNING, '#include "cuda_remote/api/calls.h"', "", "const char *const rc_call_names[RC_CALLS] = {", '\t"none",']
    out += [f'\t"{call.name}",' for call in table.calls]
    out += ["};", "", "const unsigned char rc_call_waits[RC_CALLS] = {"]
    out += [f"\t[RC_CALL_{call.name}] = {int(call.mode != 'async')}," for call in table.calls]
    return out + ["};"]


def driver_h(table):
    out = [WARNING, "#ifndef RC_API_DRIVER_H", "#define RC_API_DRIVER_H", "#include <cuda.h>", "",
           "/* CALL(name) for every function that the worker takes from its driver. */",
           "#define RC_DRIVER_FUNCTIONS(CALL) \\"]
    out += [f"\tCALL({name}) \\" for name in table.driver_functions()]
    return out + ["", "#endif"]


def arguments_by_name(call):
    return ", ".join(a.name for a in call.arguments)


def client_pack(call):
    """Lines that check the arguments and fill message.args."""
    out = []
    for a in call.arguments:
        if (a.parameter.is_pointer or a.role == "text") and not a.optional:
            out += [f"\tif (!{a.name})", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
    for a in call.arguments:
        if a.role == "delete" and a.kind in widths.ALIASES:
            out += [f"\tif (rc_alias_is((uint64_t)(uintptr_t){a.name}))", "\t\treturn CUDA_ERROR_INVALID_HANDLE;"]
        if a.role in ("handle", "delete") and a.kind:
            out += [f"\tresult = rc_route_handle(&route, RC_KIND_{a.kind}, (uint64_t)(uintptr_t){a.name});",
                    "\tif (result != CUDA_SUCCESS)", "\t\treturn result;",
                    f"\tmessage.args.{a.name} = (uint64_t)(uintptr_t){a.name};"]
        elif a.role in ("value", "delete"):
            out.append(f"\tmessage.args.{a.name} = ({a.wire_type()}){a.name};")
        elif a.role == "text":
            out += [f"\tsize_t bytes_{a.name} = strlen({a.name}) + 1;", f"\tif (bytes_{a.name} > RC_TEXT_MAX)",
                    "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        elif a.translated:
            out += client_translate(a)
        elif a.role == "device":
            out += [f"\tstruct rc_device *device_{a.name};", f"\tresult = rc_device_get({a.name}, &device_{a.name});",
                    "\tif (result != CUDA_SUCCESS)", "\t\treturn result;",
                    f"\tif (!route.session)", f"\t\troute.session = device_{a.name}->session;",
                    f"\tmessage.args.{a.name} = (uint32_t)device_{a.name}->ordinal;"]
        if a.hidden():
            out.append(f"\tmessage.args.{a.hidden().name} = {a.hidden().value};")
    return out


def client_translate(a):
    """Lines that make sent_NAME, the struct or structs as they travel."""
    if not a.count:
        given = "&" + a.name if a.by_value else a.name
        out = [f"\tresult = rc_send_{a.base}(&route, {given}, &sent_{a.name});", "\tif (result != CUDA_SUCCESS)",
               "\t\treturn result;"]
        return [f"\t{a.base} sent_{a.name} = {{ 0 }};"] + ([f"\tif ({a.name}) {{", *("\t" + line for line in out), "\t}"]
                                                         if a.optional else out)
    return [f"\t{a.base} sent_{a.name}[RC_STRUCTS_MAX];", f"\tif ({a.count} > RC_STRUCTS_MAX)",
            "\t\treturn CUDA_ERROR_INVALID_VALUE;", f"\tfor (size_t i = 0; i < {a.count}; i++) {{",
            f"\t\tresult = rc_send_{a.base}(&route, &{a.name}[i], &sent_{a.name}[i]);",
            "\t\tif (result != CUDA_SUCCESS)", "\t\t\treturn result;", "\t}"]


def client_piece(a):
    """Initialiser of the struct iovec of an argument that travels behind the fixed ones."""
    if a.role == "text":
        return f"{{ (void *)(uintptr_t){a.name}, bytes_{a.name} }}"
    if a.translated:
        address = f"sent_{a.name}" if a.count else f"&sent_{a.name}"
    else:
        address = f"(void *)(uintptr_t){'&' if a.by_value else ''}{a.name}"
    size = f"sizeof {a.name}" if a.by_value else elements(a)
    return f"{{ {address}, {f'{a.name} ? {size} : 0' if a.optional else size} }}"


def alias_key(call):
    """What tells one alias of an owner from another: the other arguments, by value or by address and size."""
    owner = next((a for a in call.arguments if a.role == "handle"), None) or \
        next(a for a in call.arguments if a.role == "device")
    key = [a for a in call.arguments if a.role == "value"]
    text = next((a.name for a in call.arguments if a.role == "text"), '""')
    return f"(uint64_t)(uintptr_t){owner.name}", f"(uint64_t){key[0].name}" if key else "0", text


def client_alias_known(call, a):
    """The driver returns an alias's object again and again; the client keeps its handle."""
    owner, key, text = alias_key(call)
    return [f"\tif (rc_alias_find(RC_KIND_{a.kind}, RC_CALL_{call.name}, {owner}, {key}, {text}, &message.args.{a.name})) {{",
            f"\t\t*{a.name} = ({a.base})(uintptr_t)message.args.{a.name};", "\t\treturn CUDA_SUCCESS;", "\t}"]


def elements(a):
    return f"(size_t)({a.count}) * sizeof *{a.name}" if a.count else f"sizeof *{a.name}"


def client_stub(call):
    inputs = [a for a in call.arguments if a.role in ("in", "text")]
    outputs = [a for a in call.arguments if a.role == "out"]
    new = [a for a in call.arguments if a.role in ("new", "alias")]
    gone = [a for a in call.arguments if a.role == "delete" and a.kind]
    fixed = call.fixed()
    signature = call.function.signature()
    flags = "uint16_t rc_flags" + (", " + signature if signature != "void" else "")
    out = [f"static CUresult call_{call.name}({flags})", "{", "\tCUresult result;"]
    if "peer" in call.options:
        out += [f"\tif ({call.options['peer']}(rc_flags, {arguments_by_name(call)}, &result))", "\t\treturn result;"]
    out.append("\tstruct rc_route route = { NULL, 0, false };")
    for a in call.arguments:
        if a.role == "value" and a.base == "CUdeviceptr":
            out += [f"\tresult = rc_route_address(&route, {a.name});", "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
    if "check" in call.options:
        out += [f"\tresult = {call.options['check']}({arguments_by_name(call)});", "\tif (result != CUDA_SUCCESS)",
                "\t\treturn result == RC_ANSWERED ? CUDA_SUCCESS : result;"]
    out += ["\tstruct {", "\t\tstruct rc_wire_call head;"]
    if fixed:
        out.append(f"\t\tstruct rc_args_{call.name} args;")
    out += ["\t} message = { 0 };"]
    out += client_pack(call)
    out += ["\tstruct rc_link *link;", f"\tresult = rc_link_get(&route, {str('anywhere' not in call.options).lower()}, &link);",
            "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
    for a in new:
        if a.role == "alias":
            out += client_alias_known(call, a)
        out += [f"\tresult = rc_handle_new(RC_KIND_{a.kind}, link->session, &message.args.{a.name});", "\tif (result != CUDA_SUCCESS)",
                "\t\treturn result;"]
    if inputs:
        pieces = ", ".join(client_piece(a) for a in inputs)
        out.append(f"\tstruct iovec in[] = {{ {pieces} }};")
    payload = f"in, {len(inputs)}" if inputs else "NULL, 0"
    size = "sizeof message.head" + (" + sizeof message.args" if fixed else "")
    function = "rc_link_post" if call.mode == "async" else "rc_link_call"
    out.append(f"\tresult = {function}(link, RC_CALL_{call.name}, rc_flags, &message.head, {size}, {payload});")
    for a in new:
        out += ["\tif (result != CUDA_SUCCESS)", f"\t\trc_handle_delete(message.args.{a.name});"]
    out += ["\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
    if outputs:
        total = " + ".join(elements(a) for a in outputs)
        out += [f"\tif (link->reply_len != {total})", f"\t\treturn rc_link_broken(link, RC_CALL_{call.name});",
                "\tconst uint8_t *from = link->reply;"]
        for a in outputs:
            keep = f"memcpy({a.name}, from, {elements(a)});"
            out += [f"\tif ({a.name})", f"\t\t{keep}"] if a.optional else [f"\t{keep}"]
            if a is not outputs[-1]:
                out.append(f"\tfrom += {elements(a)};")
    if call.mode == "async" and not gone and any(a.role == "value" and a.base == "CUdeviceptr" for a in call.arguments):
        out += ["\tresult = rc_route_settle(&route);", "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
    for a in new:
        if a.kind in widths.OF_CONTEXT:
            out.append(f"\trc_handle_attach(message.args.{a.name}, (void *)(uintptr_t)"
                       "(route.context ? route.context : (uint64_t)(uintptr_t)rc_context_current()));")
        if a.role == "alias":
            owner, key, text = alias_key(call)
            out += [f"\tresult = rc_alias_add(RC_CALL_{call.name}, {owner}, {key}, {text}, message.args.{a.name});",
                    "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
        out.append(f"\t*{a.name} = ({a.base})(uintptr_t)message.args.{a.name};")
    if "done" in call.options:
        out.append(f"\tresult = {call.options['done']}({arguments_by_name(call)});")
    for a in gone:
        if a.kind in widths.OWNERS:
            out.append(f"\trc_alias_forget(message.args.{a.name});")
        out.append(f"\trc_handle_delete(message.args.{a.name});")
    return out + ["\treturn result;", "}", ""]


def client_exports(call):
    signature, names = call.function.signature(), arguments_by_name(call)
    comma = ", " if names else ""
    out = [f"CUresult {call.name}({signature})", "{", f"\treturn call_{call.name}(0{comma}{names});", "}", ""]
    if call.twin == "ptds":
        out += [f"CUresult {call.name}_ptds({signature})", "{",
                f"\treturn call_{call.name}(RC_CALL_PER_THREAD{comma}{names});", "}", ""]
    elif call.twin == "ptsz":
        streams = [a.name for a in call.arguments if a.kind == "STREAM" and a.role == "handle"]
        mapped = ", ".join(f"{a.name} ? {a.name} : CU_STREAM_PER_THREAD" if a.name in streams else a.name
                           for a in call.arguments)
        out += [f"CUresult {call.name}_ptsz({signature})", "{", f"\treturn call_{call.name}(0, {mapped});", "}", ""]
    return out


def fields(struct, act, deny):
    """Lines that treat each member of a struct that must be translated: act(member, what) gives lines."""
    cases, error = widths.TRANSLATED[struct]
    out = []
    for tag, values in cases:
        if tag is None:
            for member, what in values:
                out += ["\t" + line for line in act(member, what)]
            continue
        out.append(f"\tswitch (to->{tag}) {{")
        for value, members in values.items():
            out.append(f"\tcase {value}:")
            for member, what in members:
                out += ["\t\t" + line for line in act(member, what)]
            out.append("\t\tbreak;")
        out += ["\tdefault:", f"\t\t{deny(error)}", "\t}"]
    return out


def only_descriptors(member):
    return [f"if (to->{member} & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)", "\treturn CUDA_ERROR_NOT_SUPPORTED;"]


def client_struct(name):
    """A function that copies a struct as it travels: handles are checked, devices have the server's numbers."""
    def act(member, what):
        if what == "device":
            return ["result = rc_send_device(route, &to->%s);" % member, "if (result != CUDA_SUCCESS)", "\treturn result;"]
        if what == "address":
            return [f"result = rc_route_address(route, to->{member});", "if (result != CUDA_SUCCESS)", "\treturn result;"]
        if what == "zero":
            return [f"if (to->{member})", "\treturn CUDA_ERROR_NOT_SUPPORTED;"]
        if what == "descriptor":
            return only_descriptors(member)
        if what == "clear":
            return [f"to->{member} = 0;"]
        return [f"result = rc_route_handle(route, RC_KIND_{widths.HANDLES[what]}, (uint64_t)(uintptr_t)to->{member});",
                "if (result != CUDA_SUCCESS)", "\treturn result;"]
    head = f"CUresult rc_send_{name}(struct rc_route *route, const {name} *from, {name} *to)"
    return [head + ";", head, "{", "\tCUresult result = CUDA_SUCCESS;", "\t(void)route;", "\t*to = *from;",
            *fields(name, act, lambda error: f"return {error};"), "\treturn result;", "}", ""]


def server_struct(name):
    """A function that replaces the handles and devices of a struct that has arrived."""
    def act(member, what):
        if what == "device":
            return ["result = server_device((uint32_t)to->%s, &device);" % member, "if (result != CUDA_SUCCESS)",
                    "\treturn result;", f"to->{member} = device;"]
        if what == "address":
            return []
        if what == "descriptor":
            return only_descriptors(member)
        if what in ("zero", "clear"):
            return [f"to->{member} = 0;"] if what == "clear" else [f"if (to->{member})", "\treturn CUDA_ERROR_NOT_SUPPORTED;"]
        return [f"result = server_object(RC_KIND_{widths.HANDLES[what]}, (uint64_t)(uintptr_t)to->{member}, &object);",
                "if (result != CUDA_SUCCESS)", "\treturn result;", f"to->{member} = object;"]
    head = f"CUresult server_read_{name}({name} *to)"
    return [head + ";", head, "{", "\tCUresult result = CUDA_SUCCESS;", "\tCUdevice device;", "\tvoid *object;",
            "\t(void)device;", "\t(void)object;", *fields(name, act, lambda error: f"return {error};"),
            "\treturn result;", "}", ""]


def width_checks(table):
    """Assertions that the widths of widths.py are those of the toolkit's header."""
    types = {(a.base, a.wire_type()) for call in table.calls for a in call.arguments if a.role in ("value", "device", "handle")}
    return [f'_Static_assert(sizeof({base}) == sizeof({wire}), "widths.py: {base}");' for base, wire in sorted(types)] + [""]


def client_c(table):
    out = [WARNING, '#include "cuda_remote/api/calls.h"', '#include "cuda_remote/client/array.h"',
           '#include "cuda_remote/client/context.h"', '#include "cuda_remote/client/handle.h"',
           '#include "cuda_remote/client/hooks.h"', '#include "cuda_remote/client/link.h"', "",
           "#include <string.h>", ""] + width_checks(table)
    for name in table.translated():
        out += client_struct(name)
    for call in table.calls:
        if call.function:
            out += client_stub(call) + client_exports(call)
    return out


def server_unpack(call):
    out = []
    for a in call.arguments:
        if a.role in ("handle", "delete") and a.kind:
            out += [f"\tvoid *object_{a.name};",
                    f"\tresult = server_object(RC_KIND_{a.kind}, args.{a.name}, &object_{a.name});",
                    "\tif (result != CUDA_SUCCESS)", "\t\treturn result;",
                    f"\t{a.base} {a.name} = ({a.base})(uintptr_t)object_{a.name};"]
        elif a.role == "device":
            out += [f"\tCUdevice {a.name};", f"\tresult = server_device(args.{a.name}, &{a.name});",
                    "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
        elif a.role in ("value", "delete"):
            out.append(f"\t{a.parameter.type} {a.name} = ({a.parameter.type})args.{a.name};")
            if a.number:
                out += [f"\tif (!server_number_known(RC_NUMBER_{a.number}, {a.name}))", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
    for a in call.arguments:
        if a.role == "text":
            out += [f"\tconst char *{a.name} = server_take(call, args.{a.name}_bytes, 1);",
                    f"\tif (!{a.name} || !args.{a.name}_bytes || {a.name}[args.{a.name}_bytes - 1])",
                    "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        elif a.role == "in" and (a.translated or not a.count):
            out += server_struct_take(a)
        elif a.role == "in":
            out += [f"\tconst {a.base} *{a.name} = server_take(call, {a.count or 1}, sizeof *{a.name});",
                    f"\tif (!{a.name})", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        elif a.role == "out" and a.count:
            out += [f"\t{a.base} *{a.name} = server_give(call, {a.count}, sizeof *{a.name});",
                    f"\tif (!{a.name})", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        elif a.role in ("out", "new", "alias"):
            out += [f"\t{a.base} {a.name} = {{ 0 }};" if a.role == "out" else f"\t{a.base} {a.name} = 0;"]
    return out


def server_struct_take(a):
    """Lines that copy one struct or number, or the structs of a list that are translated, out of the message."""
    given = f"args.{a.name}_given && " if a.optional else ""
    if not a.count:
        out = [f"\t{a.base} {a.name} = {{ 0 }};", f"\tif ({given}!server_take_into(call, &{a.name}, sizeof {a.name}))",
               "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        if a.translated:
            out += [f"\tresult = {f'args.{a.name}_given ? ' if a.optional else ''}server_read_{a.base}(&{a.name})"
                    f"{' : CUDA_SUCCESS' if a.optional else ''};", "\tif (result != CUDA_SUCCESS)", "\t\treturn result;"]
        return out
    return [f"\t{a.base} {a.name}[RC_STRUCTS_MAX];",
            f"\tif ({a.count} > RC_STRUCTS_MAX || !server_take_into(call, {a.name}, {a.count} * sizeof *{a.name}))",
            "\t\treturn CUDA_ERROR_INVALID_VALUE;", f"\tfor (size_t i = 0; i < {a.count}; i++) {{",
            f"\t\tresult = server_read_{a.base}(&{a.name}[i]);", "\t\tif (result != CUDA_SUCCESS)",
            "\t\t\treturn result;", "\t}"]


def server_given(a):
    """The argument of the driver's function."""
    if a.role == "out" and a.optional:
        return f"args.{a.name}_given ? &{a.name} : NULL"
    if a.role in ("new", "alias") or (a.role == "out" and not a.count):
        return "&" + a.name
    if a.role == "in" and not a.by_value:
        address = a.name if a.count else f"&{a.name}"
        address = f"({a.parameter.type}){address}"
        return f"args.{a.name}_given ? {address} : NULL" if a.optional else address
    return a.name


def server_bind(call, argument, destroyer):
    """Gives a new object the handle that the client chose; an object that gets no handle is destroyed."""
    name = argument.name
    undo = [f"\t\tif (result != CUDA_SUCCESS && driver.{destroyer})", f"\t\t\tdriver.{destroyer}({name});", "\t}"]
    if argument.number:
        return ["\tif (result == CUDA_SUCCESS) {",
                f"\t\tresult = server_number_add(call, RC_NUMBER_{argument.number}, {name});", *undo]
    if argument.role == "alias":
        owner = next((f"args.{a.name}" for a in call.arguments if a.role == "handle"), "0")
        return ["\tif (result == CUDA_SUCCESS)",
                f"\t\tresult = server_object_bind_alias(RC_KIND_{argument.kind}, args.{name}, (void *)(uintptr_t){name}, NULL, {owner});"]
    return ["\tif (result == CUDA_SUCCESS) {",
            f"\t\tresult = server_object_bind(RC_KIND_{argument.kind}, args.{name}, (void *)(uintptr_t){name}, NULL);", *undo]


def server_hide(call, gone):
    """In the call order: no later call finds an object that is being destroyed."""
    out = []
    for a in gone:
        if not a.kind:
            fail(call.place, f"{call.name}: parameter {a.name}: a number is not deleted by a call that may block")
        out += [f"\tstruct server_hidden hidden_{a.name};", f"\tserver_object_hide(args.{a.name}, &hidden_{a.name});"]
    return out


def server_delete(call, gone):
    """An object that the driver refuses to destroy keeps its handle, as it does in the client. A client that does not wait
    has forgotten the handle."""
    out = []
    for a in gone:
        if call.mode == "sync":
            out += ["\tif (result == CUDA_SUCCESS)", f"\t\tserver_object_ended(&hidden_{a.name});", "\telse",
                    f"\t\tserver_object_show(&hidden_{a.name});"]
            continue
        line = f"server_object_unbind(args.{a.name});" if a.kind else f"server_number_remove(call, RC_NUMBER_{a.number}, {a.name});"
        out += [f"\t{line}"] if call.mode == "async" else ["\tif (result == CUDA_SUCCESS)", f"\t\t{line}"]
    return out


def server_function(table, call):
    fixed = call.fixed()
    out = [f"static CUresult serve_{call.name}(struct server_call *call)", "{"]
    if fixed:
        out += [f"\tstruct rc_args_{call.name} args;", "\tif (!server_take_into(call, &args, sizeof args))",
                "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
    if not call.arguments:
        out.append("\t(void)call;")
    out.append("\tCUresult result;")
    out += server_unpack(call)
    given = ", ".join(server_given(a) for a in call.arguments)
    if call.twin == "ptds":
        out.append(f"\t__typeof__(driver.{call.name}) function = call->flags & RC_CALL_PER_THREAD ? "
                   f"driver.{call.name}_ptds : driver.{call.name};")
    else:
        out.append(f"\t__typeof__(driver.{call.name}) function = driver.{call.name};")
    out += ["\tif (!function)", "\t\treturn CUDA_ERROR_NOT_SUPPORTED;"]
    gone = [a for a in call.arguments if a.role == "delete"]
    if call.mode == "sync":
        out += server_hide(call, gone) + ["\tserver_order_release(call);"]
    out.append(f"\tresult = function({given});")
    out += server_delete(call, gone)
    for a in call.arguments:
        if a.role == "new" or (a.role == "out" and a.number):
            out += server_bind(call, a, table.destroyer(call, a))
        elif a.role == "alias":
            out += server_bind(call, a, None)
        if a.role == "out" and not a.count:
            out += ["\tif (result == CUDA_SUCCESS)",
                    f"\t\tresult = server_give_bytes(call, &{a.name}, sizeof {a.name});"]
    return out + ["\treturn result;", "}", ""]


def server_c(table):
    out = [WARNING, '#include "cuda_remote/server/internal.h"', ""]
    for name in table.translated():
        out += server_struct(name)
    for call in table.calls:
        if call.function and "server" not in call.options:
            out += server_function(table, call)
    out.append("const struct server_entry server_entries[RC_CALLS] = {")
    for call in table.calls:
        function = call.options.get("server", f"serve_{call.name}")
        out.append(f"\t[RC_CALL_{call.name}] = {{ {function}, SERVER_{call.mode.upper()} }},")
    return out + ["};"]


def wire_txt(table):
    """What both sides must have in common, in words: comments and names of hooks make no difference. A struct that is
    "own" may be part of the messages of Headrace's own calls."""
    out = [f"struct {name}" + (" own" if name in table.struct else "") for name in table.structs()]
    out += [f"translated {name} {widths.TRANSLATED[name]}" for name in table.translated()]
    for number, call in enumerate(table.calls, 1):
        fixed = [f"{a.name}:{a.wire_type()}" for a in call.fixed()]
        more = [f"{a.name}:{a.role}{'?' if a.optional else ''}:{a.base}[{a.count or 1}]" for a in call.arguments if not a.fixed]
        out.append(" ".join([f"call {number} {call.mode} {call.name}", call.twin or "-", *fixed, *more]))
    return out


def fuzz_h(table):
    """CALL(name, mode, fixed bytes, takes more): one line per call, for test/fuzz/fuzz_worker.c."""
    out = [WARNING, "#define RC_FUZZ_CALLS(CALL) \\"]
    for call in table.calls:
        fixed = sum(widths.BYTES[a.wire_type()] for a in call.fixed()) if call.function else 0
        more = int(any(a.role in ("in", "text") for a in call.arguments))
        out.append(f"\tCALL({call.name}, {call.mode}, {fixed}, {more}) \\")
    return out + [""]


KINDS = {"calls.h": calls_h, "names.c": names_c, "driver.h": driver_h, "client.c": client_c, "server.c": server_c,
         "wire.txt": wire_txt, "fuzz.h": fuzz_h}


def read(compiler, paths):
    functions, _, _ = header.read(compiler)
    return Table(functions, paths)


if __name__ == "__main__":
    print("\n".join(KINDS[sys.argv[1]](read(sys.argv[2], sys.argv[3:]))))
