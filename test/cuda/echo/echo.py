# SPDX-License-Identifier: BSD-3-Clause
"""echo.py KIND COMPILER API-FOLDER TABLE...: reads the table of calls and writes one generated file to stdout.

KIND: driver.c (the functions of the echo driver), cases.c (for each function a case that draws arguments, calls the driver
directly and through client and worker, and compares), direct.h (what both have in common), covered.h (the functions of which
sequences.c compares the effects).
"""
import os
import re
import sys

sys.path.insert(0, sys.argv[3])
import calls  # noqa: E402
import values  # noqa: E402
import widths  # noqa: E402

TAB = "\t"
WARNING = "/* Generated from the table in cuda_remote/api/calls by test/cuda/echo/echo.py: do not edit. */"


class Case:
    """A symbol of a forwarded function: the function itself or its variant for per-thread default streams."""

    def __init__(self, call, twin):
        self.call, self.twin = call, twin
        self.symbol = call.name + (f"_{twin}" if twin else "")


def read_hand(table):
    """Adds the calls of hand.list to the table's, and fails if the list and the table disagree."""
    hand, by_effect = calls.Table.__new__(calls.Table), {"copies": [], "sequence": []}
    hand.functions, hand.calls = table.functions, []
    path = os.path.join(os.path.dirname(__file__), "hand.list")
    table.arrives_as, table.written, table.anywhere, table.waits = {}, [], set(), set()
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line, words = line.split("#")[0], line.split("#")[0].split()
            if words and words[0] in by_effect:
                by_effect[words[0]] += words[1:]
                continue
            if words and words[0] == "written":
                names = [word for word in words[1:] if word not in ("anywhere", "wait")]
                table.written += names
                table.anywhere.update(names if "anywhere" in words else ())
                table.waits.update(names if "wait" in words else ())
                continue
            for word in words:
                if word.startswith("as="):
                    table.arrives_as[words[1]] = word[len("as="):]
                    line = line.replace(f" {word}", "")
            hand.line(f"{path}:{number}", line)
    described = {case.symbol for case in cases(hand)} | set(table.written)
    effects = set(by_effect["copies"] + by_effect["sequence"])
    for name in sorted(set(table.hand) ^ (described | effects)):
        sys.exit(f"{path}: {name} is " + ("not described" if name in table.hand else "not hand in the table"))
    for name in sorted(described & effects):
        sys.exit(f"{path}: {name} is described, and its effects are compared")
    check_copies(by_effect["copies"])
    table.calls += hand.calls
    table.sequence = by_effect["sequence"]


def check_copies(names):
    """Fails if copies.c does not call each of these functions."""
    path = os.path.join(os.path.dirname(__file__), "copies.c")
    with open(path, encoding="utf-8") as file:
        called = set(re.findall(r"\bF\((\w+)\)", file.read()))
    for name in sorted(set(names) - called):
        sys.exit(f"{path}: {name} is not in FORMS")


def read(compiler, paths):
    widths.TRANSLATED.update(values.TRANSLATED)
    widths.WIRE_TYPE.update({name: "uint32_t" for name in values.ENUMERATIONS})
    table = calls.read(compiler, paths)
    read_hand(table)
    return table


def cases(table):
    out = []
    for call in table.calls:
        if call.function:
            out.append(Case(call, None))
            if call.twin:
                out.append(Case(call, call.twin))
    return out


def driver_symbol(table, case):
    """The function of the driver in which the call must arrive: a worker issues those of ptsz with another stream."""
    return table.arrives_as.get(case.call.name, case.call.name if case.twin == "ptsz" else case.symbol)


def by_symbol(table):
    """{symbol of the driver: index in the record}."""
    symbols = [driver_symbol(table, case) for case in cases(table)] + [written_symbol(name) for name in table.written]
    return {symbol: i for i, symbol in enumerate(dict.fromkeys(symbols))}


def written_symbol(name):
    return name[:-len("_ptsz")] if name.endswith("_ptsz") else name


def translated(table):
    return sorted({a.base for call in table.calls for a in call.arguments if a.translated})


def members(struct):
    """[(tag or None, value, ((member, what), ...))] of a struct with members that are translated."""
    out = []
    for tag, found in widths.TRANSLATED[struct][0]:
        if tag is None:
            out.append((None, None, found))
        else:
            out += [(tag, value, inside) for value, inside in found.items()]
    return out


def can_be_wrong(struct):
    return any(what == "device" or what in widths.HANDLES for _, _, inside in members(struct) for _, what in inside)


def size_of(a):
    """Bytes behind a pointer."""
    element = "1" if a.base == "void" else f"sizeof({a.base})"
    return f"(size_t)({a.count}) * {element}" if a.count else element


# ---- the driver ----

def struct_type(table, a):
    return str(translated(table).index(a.base) + 1) if a.translated else "0"


def driver_check(struct):
    """A function that checks the handles and devices in a struct."""
    out = [f"static void check_{struct}(struct echo_call *call, const {struct} *from)", "{", "\t(void)call;",
           "\t(void)from;"]
    for tag, value, inside in members(struct):
        for member, what in inside:
            if what == "device":
                line = f"echo_check_device(call, (int)from->{member});"
            elif what in widths.HANDLES:
                line = f"echo_check_handle(call, RC_KIND_{widths.HANDLES[what]}, (uint64_t)(uintptr_t)from->{member});"
            else:
                continue
            out += [f"\tif (from->{tag} == {value})", f"\t\t{line}"] if tag else [f"\t{line}"]
    return out + ["}", ""]


def driver_members(struct):
    """A function that copies the members that count, so that the others are 0 in the record."""
    tag, by_value = values.MEMBERS[struct]
    out = [f"static void keep_{struct}(struct echo_call *call, unsigned index, const {struct} *from, size_t n, unsigned type)",
           "{", "\tfor (size_t i = 0; i < n; i++) {", f"\t\t{struct} to;", "\t\tmemset(&to, 0, sizeof to);",
           f"\t\tto.{tag} = from[i].{tag};", f"\t\tswitch (from[i].{tag}) {{"]
    for value, inside in by_value.items():
        out += [f"\t\tcase {value}:", *(f"\t\t\tto.{member} = from[i].{member};" for member in inside), "\t\t\tbreak;"]
    return out + ["\t\tdefault:", "\t\t\tto = from[i];", "\t\t}", "\t\techo_bytes(call, index, &to, sizeof to, type);", "\t}", "}", ""]


def driver_argument(table, a, index):
    """Lines that check and record one argument."""
    cast = f"(uint64_t)(uintptr_t){a.name}"
    if a.role in ("handle", "delete") and a.kind:
        return [f"\techo_handle(&call, {index}, RC_KIND_{a.kind}, {cast});"]
    if a.number and a.role in ("value", "delete"):
        return [f"\techo_number(&call, {index}, {cast});"]
    if a.role == "device":
        return [f"\techo_device(&call, {index}, {a.name});"]
    if a.role == "value" or (a.by_value and not a.translated):
        return [f"\techo_value(&call, {index}, &{a.name}, sizeof {a.name});"]
    if a.by_value:
        return [f"\tcheck_{a.base}(&call, &{a.name});", f"\techo_bytes(&call, {index}, &{a.name}, sizeof {a.name}, {struct_type(table, a)});"]
    out = [f"\techo_pointer(&call, {index}, {a.name}, {str(a.optional).lower()});"]
    if a.role == "text":
        out += [f"\tif ({a.name})", f"\t\techo_bytes(&call, {index}, {a.name}, strlen({a.name}) + 1, 0);"]
    elif a.role == "in":
        if a.translated:
            out += [f"\tfor (size_t i = 0; {a.name} && i < {a.count or 1}; i++)", f"\t\tcheck_{a.base}(&call, &{a.name}[i]);"]
        if a.base in values.MEMBERS:
            out += [f"\tif ({a.name})", f"\t\tkeep_{a.base}(&call, {index}, {a.name}, {a.count or 1}, {struct_type(table, a)});"]
        elif a.translated:
            out += [f"\tfor (size_t i = 0; {a.name} && i < {a.count or 1}; i++)",
                    f"\t\techo_bytes(&call, {index}, &{a.name}[i], sizeof {a.name}[i], {struct_type(table, a)});"]
        else:
            out += [f"\tif ({a.name})", f"\t\techo_bytes(&call, {index}, {a.name}, {size_of(a)}, 0);"]
    return out


def alias_of(call):
    """The owner's handle and what tells its aliases apart, as C expressions."""
    owner, key = "0", "0"
    for a in call.arguments:
        if a.role == "handle":
            owner = f"(uint64_t)(uintptr_t){a.name}"
        elif a.role in ("value", "device"):
            key = f"(uint64_t){a.name}"
        elif a.role == "text":
            key = f"echo_text_key({a.name})"
    return owner, key


def driver_result(call, a, index, function):
    """Lines that return one result."""
    if a.role == "new":
        return [f"\t*{a.name} = ({a.base})(uintptr_t)echo_new(RC_KIND_{a.kind}, 0);"]
    if a.role == "alias":
        owner, key = alias_of(call)
        return [f"\t*{a.name} = ({a.base})(uintptr_t)echo_alias(RC_KIND_{a.kind}, {function}, {owner}, {key});"]
    if a.role == "delete":
        return [f"\techo_number_delete({a.name});" if a.number else f"\techo_delete((uint64_t)(uintptr_t){a.name});"]
    if a.role == "out":
        out = [f"\techo_fill(&call, {index}, {a.name}, {size_of(a)});"]
        if a.base == "CUdeviceptr" and not a.count:
            out += ["\tif (!call.armed)", f"\t\t*{a.name} = echo_addresses();"]
        return out + [f"\techo_number_new(*{a.name});"] if a.number else out
    return []


def driver_function(table, call, symbol, function):
    out = [f"CUresult {symbol}({call.function.signature()})", "{", "\tstruct echo_call call;", f"\techo_begin(&call, {function});"]
    for index, a in enumerate(call.arguments):
        out += driver_argument(table, a, index)
    out += ["\tif (echo_decide(&call) != CUDA_SUCCESS)", "\t\treturn call.result;"]
    for index, a in enumerate(call.arguments):
        out += driver_result(call, a, index, function)
    return out + ["\treturn call.result;", "}", ""]


def driver_twin(call):
    """The variant whose NULL stream is the thread's own: the same function with that stream."""
    arguments = ", ".join(f"{a.name} ? {a.name} : CU_STREAM_PER_THREAD" if a.kind == "STREAM" and a.role == "handle" else a.name
                          for a in call.arguments)
    return [f"CUresult {call.name}_ptsz({call.function.signature()})", "{", f"\treturn {call.name}({arguments});", "}", ""]


def driver_c(table):
    index = by_symbol(table)
    out = [WARNING, '#include "test/cuda/echo/driver.h"', "", "#include <string.h>", ""]
    for struct in translated(table):
        out += driver_check(struct) + (driver_members(struct) if struct in values.MEMBERS else [])
    for case in cases(table):
        if case.twin != "ptsz" and case.call.name in table.arrives_as:
            continue  # in driver.c, where it calls the other function
        out += driver_twin(case.call) if case.twin == "ptsz" else driver_function(table, case.call, case.symbol, index[case.symbol])
    return out


# ---- the cases ----

def struct_choices(struct):
    """The tags of a struct with the values that are drawn: those of which a member can be wrong come first."""
    out = {}
    for tag, value, inside in members(struct):
        if tag is not None and value in values.MEMBERS.get(struct, (None, {value}))[1]:
            out.setdefault(tag, []).append((value, any(what == "device" or what in widths.HANDLES for _, what in inside)))
    return {tag: sorted(found, key=lambda choice: not choice[1]) for tag, found in out.items()}


def case_struct(struct):
    """Functions that draw a struct for both sides, and that turn the direct driver's handles into the worker's."""
    draw = [f"static void draw_{struct}(struct run *run, {struct} *direct, {struct} *remote, bool wrong)", "{"]
    translate = [f"static void translate_{struct}(const struct run *run, void *bytes)", "{", f"\t{struct} *to = bytes;",
                 "\t(void)run;", "\t(void)to;"]
    draw += ["\tdraw_bytes(run, direct, sizeof *direct);", "\t(void)wrong;"]
    for tag, found in struct_choices(struct).items():
        breakable = sum(choice[1] for choice in found)
        draw += ["\t{", f"\t\tstatic const uint64_t values[] = {{ {', '.join(value for value, _ in found)} }};",
                 f"\t\tdirect->{tag} = (__typeof__(direct->{tag}))values[draw_below(run, wrong ? {breakable or len(found)} : {len(found)})];", "\t}"]
    for tag, value, inside in members(struct):
        for member, what in inside:
            if what == "descriptor":
                draw.append(f"\tdirect->{member} = (__typeof__(direct->{member}))(draw(run) & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);")
            elif what == "zero":
                draw.append(f"\tdirect->{member} = 0;")
    for value, inside in values.MEMBERS.get(struct, (None, {}))[1].items():
        tag = values.MEMBERS[struct][0]
        lines = [f"\t\tdirect->{member} = (__typeof__(direct->{member}))({drawn});" for member, drawn in inside.items() if drawn]
        draw += [f"\tif (direct->{tag} == {value}) {{", *lines, "\t}"]
    draw.append("\t*remote = *direct;")
    for tag, value, inside in members(struct):
        for member, what in inside:
            drawn, back = [], []
            if what == "device":
                drawn = ["struct device_pair device = draw_device(run, wrong);", f"direct->{member} = device.direct;",
                         f"remote->{member} = device.remote;"]
            elif what in widths.HANDLES:
                kind = widths.HANDLES[what]
                drawn = [f"struct pair pair = draw_object(run, RC_KIND_{kind}, false, wrong);",
                         f"direct->{member} = ({what})(uintptr_t)pair.direct;",
                         f"remote->{member} = ({what})(uintptr_t)pair.remote;"]
                back = [f"to->{member} = ({what})(uintptr_t)translate(run, (uint64_t)(uintptr_t)to->{member});"]
            elif what == "clear":
                back = [f"to->{member} = 0;"]
            if tag and drawn:
                draw += [f"\tif (direct->{tag} == {value}) {{", *("\t\t" + line for line in drawn), "\t}"]
            elif drawn:
                draw += ["\t{", *("\t\t" + line for line in drawn), "\t}"]
            if back:
                translate += ([f"\tif (to->{tag} == {value})", f"\t\t{back[0]}"] if tag else [f"\t{back[0]}"])
    return draw + ["}", ""] + translate + ["}", ""]


def breakable(a):
    """True if the argument can be wrong in a way that the driver and the client must find."""
    return bool(a.kind and a.role in ("handle", "delete")) or a.role in ("device", "text", "new", "alias") or \
        (a.role in ("in", "out") and not a.optional and not a.by_value) or (a.translated and can_be_wrong(a.base)) or \
        bool(a.number and a.role in ("value", "delete"))


def ordered(call, drawn):
    """The arguments in the order in which they are drawn: those with expressions first, then numbers, then the rest."""
    place = {name: i for i, name in enumerate(drawn)}
    return sorted(call.arguments, key=lambda a: (place.get(a.name, len(place)), a.role not in ("value",)))


def case_argument(a, index, drawn):
    """(lines that draw the argument, what the direct driver gets, what the client gets)."""
    wrong = f"wrong == {index}"
    name = a.name
    if a.role in ("handle", "delete") and a.kind:
        drawing = f"draw_object(run, RC_KIND_{a.kind}, {str(a.role == 'delete').lower()}, {wrong})"
        if drawn.get(name):
            drawing = f"{wrong} ? {drawing} : {drawn[name]}"
        return ([f"\tstruct pair {name} = {drawing};"],
                f"({a.base})(uintptr_t){name}.direct", f"({a.base})(uintptr_t){name}.remote")
    if a.number and a.role in ("value", "delete"):
        return [f"\tuint64_t {name} = draw_number(run, RC_NUMBER_{a.number}, {wrong});"], name, name
    if a.role == "device":
        return [f"\tstruct device_pair {name} = draw_device(run, {wrong});"], f"{name}.direct", f"{name}.remote"
    if a.role == "value":
        out = [f"\t{a.base} {name};", f"\tdraw_bytes(run, &{name}, sizeof {name});"]
        if name in values.COUNTS:
            out.append(f"\t{name} = 1 + {name} % LIST_MAX;")
        elif drawn.get(name):
            always = (a.call, name) in values.ALWAYS
            out += [] if always else ["\tif (!run->wild)"]
            out.append(f"{'' if always else TAB}\t{name} = ({a.base})({drawn[name]});")
        return out, name, name
    if a.role == "text":
        return ([f"\tchar {name}[TEXT_MAX];", f"\tdraw_text(run, {name});"], f"{wrong} ? NULL : {name}", f"{wrong} ? NULL : {name}")
    return case_pointer(a, index, drawn.get(name))


def case_pointer(a, index, content):
    """content: an expression for each byte of it, or None."""
    wrong, name = f"wrong == {index}", a.name
    base = "uint8_t" if a.base == "void" else a.base
    room = "[LIST_MAX]" if a.count else ""
    star = "" if a.count else "&"
    out = [f"\t{base} {name}_d{room}, {name}_r{room};"]
    if a.translated and a.count:
        out += [f"\tfor (size_t i = 0; i < LIST_MAX; i++)", f"\t\tdraw_{a.base}(run, &{name}_d[i], &{name}_r[i], {wrong} && !i);"]
    elif a.translated:
        out.append(f"\tdraw_{a.base}(run, &{name}_d, &{name}_r, {wrong});")
    else:
        fill = f"memset(&{name}_d, {content}, sizeof {name}_d)" if content else f"draw_bytes(run, &{name}_d, sizeof {name}_d)"
        out += [f"\t{fill};", f"\tmemcpy(&{name}_r, &{name}_d, sizeof {name}_d);"]
    if a.by_value:
        return out, f"{name}_d", f"{name}_r"
    missing = None
    if a.optional:
        out.append(f"\tbool {name}_given = draw_below(run, 4) != 0;")
        missing = f"!{name}_given"
    elif not a.translated or not can_be_wrong(a.base):
        missing = wrong
    if missing:
        return out, f"{missing} ? NULL : {star}{name}_d", f"{missing} ? NULL : {star}{name}_r"
    return out, f"{star}{name}_d", f"{star}{name}_r"


def case_results(call):
    """Lines that compare what the two wrote, and keep what was made."""
    out = []
    for a in call.arguments:
        if a.role == "out":
            out.append(f'\tcompare_bytes(run, "{a.name}", &{a.name}_d, &{a.name}_r, sizeof {a.name}_d);')
            if a.number:
                out.append(f"\tnumber_made(run, RC_NUMBER_{a.number}, {a.name}_d);")
        elif a.role in ("new", "alias"):
            owner = next((f"{b.name}.direct" for b in call.arguments if b.role == "handle"), "0") if a.role == "alias" else "0"
            out.append(f"\tobject_made(run, RC_KIND_{a.kind}, (uint64_t)(uintptr_t){a.name}_d, (uint64_t)(uintptr_t){a.name}_r, "
                       f"{str(a.role == 'alias').lower()}, {owner});")
        elif a.role == "delete":
            out.append(f"\tnumber_gone(run, RC_NUMBER_{a.number}, {a.name});" if a.number else f"\tobject_gone(run, {a.name});")
    return out


def case_function(case):
    call = case.call
    drawn = values.VALUES.get(call.name, {})
    out = [f"static void case_{case.symbol}(struct run *run)", "{"]
    wrongs = [str(index) for index, a in enumerate(call.arguments) if breakable(a)]
    if wrongs:
        out += [f"\tstatic const int wrongs[] = {{ {', '.join(wrongs)} }};",
                f"\tint wrong = run->wrong ? wrongs[draw_below(run, {len(wrongs)})] : -1;"]
    direct, remote = {}, {}
    for a in ordered(call, drawn):
        lines, direct[a.name], remote[a.name] = case_argument(a, call.arguments.index(a), drawn)
        out += lines
    given = [", ".join(side[a.name] for a in call.arguments) for side in (direct, remote)]
    out += ["\tcase_begins(run);", f"\tcase_direct(run, run->direct.{case.symbol}({given[0]}));",
            f"\tcase_remote(run, {case.symbol}({given[1]}));"]
    return out + case_results(call) + ["}", ""]


def cases_c(table):
    index = by_symbol(table)
    out = [WARNING, '#include "test/cuda/echo/runner.h"', "", "#include <string.h>", ""]
    for struct in translated(table):
        out += case_struct(struct)
    out += ["void (*const translators[])(const struct run *, void *) = {"]
    out += [f"\ttranslate_{struct}," for struct in translated(table)] + ["};", ""]
    for case in cases(table):
        out += case_function(case)
    out += [f"void case_{name}(struct run *run);" for name in table.written]
    out.append("const struct echo_case echo_cases[] = {")
    for case in cases(table):
        flags = [case.call.mode == "async", "anywhere" not in case.call.options,
                 any(breakable(a) for a in case.call.arguments), any(a.role == "alias" for a in case.call.arguments)]
        made = next((f"RC_KIND_{a.kind}" for a in case.call.arguments if a.role == "new"), "RC_KIND_NONE")
        number = next((f"1 + RC_NUMBER_{a.number}" for a in case.call.arguments if a.role == "out" and a.number), "0")
        out.append(f'\t{{ "{case.symbol}", case_{case.symbol}, {index[driver_symbol(table, case)]}, '
                   f'{", ".join(str(flag).lower() for flag in flags)}, {made}, {number} }},')
    for name in table.written:
        flags = ", ".join(str(flag).lower() for flag in (name not in table.waits, name not in table.anywhere, True, False))
        out.append(f'\t{{ "{name}", case_{name}, {index[written_symbol(name)]}, {flags}, RC_KIND_NONE, 0 }},')
    return out + ["};", f"const unsigned echo_n_cases = {len(cases(table)) + len(table.written)};"]


def direct_h(table):
    """The functions that the program calls in the driver itself; the indices of those that are written by hand."""
    index = by_symbol(table)
    out = [WARNING, "#define ECHO_FUNCTIONS(CALL) \\"]
    out += [f"\tCALL({name}) \\" for name in [case.symbol for case in cases(table)] + table.written] + ["", "enum {"]
    out += [f"\tECHO_INDEX_{name} = {index[name]}," for name in dict.fromkeys(map(written_symbol, table.written))]
    return out + ["};"]


def covered_h(table):
    """The functions of which sequences.c must make calls that succeed."""
    return [WARNING, "#define ECHO_COVERED(F) \\"] + [f"\tF({name}) \\" for name in table.sequence] + [""]


KINDS = {"driver.c": driver_c, "cases.c": cases_c, "direct.h": direct_h, "covered.h": covered_h}

if __name__ == "__main__":
    print("\n".join(KINDS[sys.argv[1]](read(sys.argv[2], sys.argv[4:]))))
