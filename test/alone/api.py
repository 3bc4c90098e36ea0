#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""api.py TOP LIBRARY: the functions of channel.h, the names in channel.map, what the shared library exports and the man
pages of section 3 are the same set; each page has the header's prototypes and fields; hr_channel(7) has the settings with
their defaults; the code in docs/CHANNEL.md is in the examples."""
import pathlib
import re
import subprocess
import sys

top, library = pathlib.Path(sys.argv[1]), sys.argv[2]
errors = []


def words(text):
    """Without what does not count: how the text is broken into lines and spaced."""
    return re.sub(r"\s*([(),;*])\s*", r"\1", " ".join(text.split()))


def differ(what, have, want):
    for name in sorted(want - have):
        errors.append(f"{what}: {name} is missing")
    for name in sorted(have - want):
        errors.append(f"{what}: {name} is not in channel.h")


header = (top / "rdma_channel/include/headrace/channel.h").read_text()
code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
prototypes = {}
for text in re.findall(r"^HR_API\s+([^;{]*?\(.*?\)\s*;)", code, flags=re.S | re.M):
    prototypes[re.search(r"(\w+)\s*\(", text).group(1)] = words(text)
functions = set(prototypes)
if len(functions) < 5:
    errors.append("channel.h: no functions found")

version_script = re.sub(r"/\*.*?\*/", "", (top / "rdma_channel/channel.map").read_text(), flags=re.S)
differ("channel.map", set(re.findall(r"\b(hr_\w+);", version_script)), functions)

exported, versions = set(), set()
for line in subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines():
    kind, symbol = line.split()[-2:]
    name, _, version = symbol.partition("@@")
    if kind == "A":
        continue  # the version itself
    exported.add(name)
    versions.add(version)
differ(library, exported, functions)
if versions != {"HEADRACE_CHANNEL_0"}:
    errors.append(f"{library}: symbols of the versions {sorted(versions)}")

manual = top / "docs/man"
differ("docs/man", {page.stem for page in manual.glob("hr_*.3")}, functions)
for name in sorted(functions):
    page = manual / f"{name}.3"
    if not page.exists():
        continue
    text = page.read_text()
    if text.startswith(".so "):
        page = manual / pathlib.Path(text.split()[1]).name
        text = page.read_text()
    shown = {words(line) for line in re.findall(r'^\.B "(.*)"$', text, flags=re.M)}
    if prototypes[name] not in shown:
        errors.append(f"{page.name}: has not the prototype {prototypes[name]}")
    if not re.search(rf"^.*\b{name}\b.*\\- ", text, flags=re.M):
        errors.append(f"{page.name}: {name} is not under NAME")
overview = (manual / "hr_channel.7").read_text()
for name in sorted(functions):
    if name not in overview:
        errors.append(f"hr_channel.7: does not mention {name}")

# What grows without anybody thinking of the manual: settings with their defaults, and the fields of the structs.
items = {}
for item in overview[overview.index(".SH ENVIRONMENT"):].split("\n.TP\n")[1:]:
    heading, _, text = item.partition("\n")
    for name in re.findall(r"HEADRACE_\w+", heading):
        items[name] = text.partition("\n.PP\n")[0]
settings = {}
for source in [*(top / "rdma_channel").rglob("*.c"), *(top / "ib").glob("*.c")]:
    settings.update(re.findall(r'^HR_SETTING\(\w+, "(\w+)", "(\w*)"', source.read_text(), flags=re.M))
for name in sorted(settings.keys() | items.keys()):
    if name not in items or name not in settings:
        errors.append(f"hr_channel.7: {name} is {'not there' if name in settings else 'no setting of the channel'}")
    elif not re.search(rf"\b{settings[name]}\b", items[name]):
        errors.append(f"hr_channel.7: {name}: does not say that the default is {settings[name]}")
for struct, page in ("hr_channel_attr", "hr_channel_init"), ("hr_connect_attr", "hr_channel_connect"), \
        ("hr_conn_stats", "hr_conn_stats"):
    body = re.search(rf"struct {struct} \{{(.*?)\}}", code, flags=re.S).group(1)
    for field in re.findall(r"(\w+)\s*[,;]", body):
        if field not in ("size", "reserved") and not re.search(rf"\b{field}\b", (manual / f"{page}.3").read_text()):
            errors.append(f"{page}.3: does not mention the field {field}")

quoted = 0
guide = (top / "docs/CHANNEL.md").read_text()
for match in re.finditer(r"(?:<!-- (\S+) -->\n)?```c\n(.*?)```", guide, flags=re.S):
    quoted += 1
    source, text = match.groups()
    if not source:
        errors.append(f"docs/CHANNEL.md: this piece of code does not say where it is from:\n{text}")
    elif text not in (top / source).read_text():
        errors.append(f"docs/CHANNEL.md: not in {source}:\n{text}")
if not quoted:
    errors.append("docs/CHANNEL.md: no code found")

for error in errors:
    print(error)
print(f"{len(functions)} functions, {quoted} quotations, {len(errors)} errors")
sys.exit(bool(errors))
