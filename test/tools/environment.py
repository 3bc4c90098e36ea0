#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""environment.py TOP: headrace(7) has each environment variable that the code reads, with the setting's default and range,
and no other; and the pages that mention a variable mention one of these."""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
errors = []
FOLDERS = "adi", "bench", "ch3", "cuda_remote", "ib", "rdma_channel"
# Functions that read a variable named by their argument. Their calls are looked through like those of getenv.
READERS = "getenv", "secure_getenv", "launch_number", "setting"
UNITS = {"": 0, "k": 10, "M": 20, "G": 30}
# Other software's variables that the code sets or removes, and does not read.
SET_ONLY = {"LD_LIBRARY_PATH", "LD_PRELOAD"}

sources = {path: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
           for folder in FOLDERS for path in sorted((top / folder).rglob("*.[ch]"))}
defines = {}
for text in sources.values():
    for name, value in re.findall(r"^#define (\w+) +([^\n\\]+)$", text, flags=re.M):
        defines.setdefault(name, value)
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, flags=re.S):
        for name, value in re.findall(r"\b([A-Z_][A-Z0-9_]*)\s*=\s*([^,}]+)", body):
            defines.setdefault(name, value.strip())


def value_of(expression):
    """The number that a C expression of constants has."""
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)(?:u|l)+\b", r"\1", expression, flags=re.I)
    expression = re.sub(r"\(uint\d+_t\)|UINT64_C|UINT32_C", "", expression).replace("UINT32_MAX", "0xffffffff")
    for _ in range(8):
        names = set(re.findall(r"\b[A-Z_]\w*\b", expression))
        if not names:
            break
        for name in names:
            if name not in defines:
                raise ValueError(f"{name} has no #define")
            expression = re.sub(rf"\b{name}\b", f"({defines[name]})", expression)
        expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)(?:u|l)+\b", r"\1", expression, flags=re.I)
    if not re.fullmatch(r"[0-9a-fA-Fx()<>+*\s-]+", expression):
        raise ValueError(f"not understood: {expression}")
    return eval(expression)  # pylint: disable=eval-used # digits and operators only


def number_of(text):
    number, unit = re.fullmatch(r"(\d+)([kMG]?)", text).groups()
    return int(number) << UNITS[unit]


settings = {}
reads = set()
for path, text in sources.items():
    where = path.relative_to(top)
    for match in re.finditer(r'HR_SETTING\(\w+,\s*"(\w+)",\s*"([^"]*)",\s*(.+?),\s*(.+?),\s*"', text, flags=re.S):
        name, default, low, high = match.groups()
        settings[name] = default, value_of(low), value_of(high)
    if "HR_SETTING(" in text and where.name != "setting.h" and \
            len(re.findall(r"\bHR_SETTING\(", text)) != len(re.findall(r'\bHR_SETTING\(\w+,\s*"', text)):
        errors.append(f"{where}: a use of HR_SETTING that this test does not understand")
    for function in READERS:
        reads.update(re.findall(rf'(?<![\w.>]){function}\("([A-Z]\w*)"\)', text))
    # A call with a name that is not in the text: a reader, or the members of a table of names.
    if re.search(r"\bgetenv\([^\")]", text) and where.as_posix() not in (
            "adi/core/launch_wire.c", "bench/perf/raw_verbs.c", "bench/perf/variant.c", "rdma_channel/base/setting.c"):
        errors.append(f"{where}: getenv of a name that this test cannot see: add the function to READERS")
for path in sorted((top / "adi").rglob("local.mk")):
    reads.update(re.findall(r"^\t\$\(call adi_wrapper,\w+,([A-Z_]+),", path.read_text(), flags=re.M))
if len(settings) < 50 or len(reads) < 10:
    errors.append(f"only {len(settings)} settings and {len(reads)} other variables found in the code")

manual = top / "docs/man"
page = (manual / "headrace.7").read_text().replace("\\-", "-")
entries = {}
for item in re.split(r"^\.(?:TP|SS.*|SH.*)$", page[page.index(".SH ENVIRONMENT"):], flags=re.M):
    heading, _, text = item.strip().partition("\n")
    for name in re.findall(r"\b[A-Z][A-Z0-9]*_?[A-Z0-9_]+\b", re.sub(r"^\.BR? ", "", heading)) if heading.startswith(".B") else []:
        if name in entries:
            errors.append(f"headrace.7: {name} is there twice")
        entries[name] = " ".join(text.split())

for name in sorted((settings.keys() | reads) - entries.keys()):
    errors.append(f"headrace.7: {name} is missing")
for name in sorted(entries.keys() - settings.keys() - reads - SET_ONLY):
    errors.append(f"headrace.7: nothing reads {name}")
for name, (default, low, high) in sorted(settings.items()):
    match = re.search(r"Default: ([^;]*?)(?:; (\S+) to (\S+))?\.$", entries.get(name, "Default: ."))
    if not match:
        errors.append(f"headrace.7: {name}: the entry does not end in \"Default: VALUE[; MIN to MAX].\"")
        continue
    if name in entries and (match.group(1) != default if default else not match.group(1)):
        errors.append(f"headrace.7: {name}: the default is {default or 'empty'}, the page says {match.group(1)!r}")
    shown = tuple(map(number_of, match.groups()[1:])) if match.group(2) else (0, 0)
    if name in entries and shown != (low, high):
        errors.append(f"headrace.7: {name}: the range is {low} to {high}, the page says {shown[0]} to {shown[1]}")

for path in sorted(manual.iterdir()):
    text = path.read_text()
    for name in sorted(set(re.findall(r"\bHEADRACE_[A-Z_]*[A-Z]\b", text)) - entries.keys()):
        errors.append(f"{path.name}: nothing reads {name}")
    if ".SH SEE ALSO" in text and path.name != "headrace.7" and path.suffix != ".3" and \
            ".BR headrace (7)" not in text:
        errors.append(f"{path.name}: SEE ALSO lacks headrace(7)")

for error in errors:
    print(error)
print(f"{len(settings)} settings, {len(reads)} other variables, {len(errors)} errors")
sys.exit(bool(errors))
