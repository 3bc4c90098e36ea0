#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs_style.py TOP: checks every Markdown file of the git checkout TOP. Exit status 1 if something is wrong.

- Prose has at most 120 columns. Tables, headings, code blocks and comments may be longer.
- A relative link leads to a file of the tree, and its #anchor to a heading of that file.
- A path in backticks is a path of the tree: from the top, from the document's own folder (`../calls.py`), from a folder that
  its end identifies (`exec/launch.c`), or the bare name of a source file (`launch.c`). * matches any characters, {a,b}
  either word. Generated files are listed below.
- A word of four or more parts outside backticks, such as a_client_is_refused, is the name of a test case: it occurs in a
  file of test/.
"""
import fnmatch
import itertools
import pathlib
import re
import subprocess
import sys

COLUMNS = 120
GENERATED = {
    "cuda_remote/api/calls.h", "cuda_remote/api/names.c", "cuda_remote/api/driver.h", "cuda_remote/client/calls.c",
    "cuda_remote/server/calls.c", "cuda_remote/api/exports.c", "cuda_remote/door/build.c",
    "test/cuda/softgpu/vectors/forms.h",
    "adi/mpi.h", "adi/bindings/functions.h", "adi/fortran/mpif.h", "adi/fortran/mpi.f90", "adi/fortran/mpi_f08.f90",
}
# Files of others that the text speaks of: installed names, CUDA's and the system's headers.
FOREIGN = {"cuda.h", "mpi.h", "cuda_runtime_api.h", "headrace/channel.h", "cudaProfiler.h"}
SOURCE = r"\.(?:c|h|cu|cuh|py|sh|table|api|pml|mk|m4|map|list|md|csv|png|in|\d)"

CASE = re.compile(r"\b[a-z]+(?:_[a-z]+){3,}\b")


def words(line):
    """Spans in single backticks."""
    return re.findall(r"(?<!`)`([^`]+)`(?!`)", line)


def spellings(text):
    """`a.{c,h}` is a.c and a.h."""
    parts = [part.split(",") if i % 2 else [part] for i, part in enumerate(re.split(r"\{([^}]*)\}", text))]
    return ["".join(choice) for choice in itertools.product(*parts)]


def anchor(heading):
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Tree:
    def __init__(self, top):
        self.top = top
        listed = subprocess.run(["git", "-C", str(top), "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE,
                                universal_newlines=True, check=True)
        self.files = sorted(name for name in listed.stdout.splitlines() if (top / name).exists())
        self.folders = {str(parent) for name in self.files for parent in pathlib.PurePath(name).parents}
        self.first = {name.split("/")[0] for name in self.files if "/" in name}
        self.all = self.files + sorted(self.folders) + sorted(GENERATED)
        self.cases = None

    def has_case(self, name):
        if self.cases is None:
            texts = (self.top / name for name in self.files if name.startswith("test/") and name.endswith((".c", ".sh")))
            self.cases = {case for text in texts for case in CASE.findall(text.read_text())}
        return name in self.cases

    def has(self, path):
        path = path.rstrip("/")
        return any(fnmatch.fnmatchcase(name, path) or fnmatch.fnmatchcase(name, "*/" + path) for name in self.all)

    def is_path(self, text):
        """A word that names a file or folder of this tree, if it names any."""
        if not re.fullmatch(r"\.?[\w.{},*+-]+(?:/[\w.{},*+-]+)*/?", text) or text in FOREIGN:
            return False
        if "/" in text:
            return text.split("/")[0] in self.first or re.search(SOURCE + "$", text) is not None
        return re.search(r"[\w}*]\.(?:c|h|py|sh|table|api|pml|mk)$", text) is not None


def prose_lines(lines):
    """(number, line) outside code blocks and comments."""
    fenced = commented = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if "<!--" in line:
            commented = True
        if not fenced and not commented and not line.startswith("    "):
            yield number, line
        if "-->" in line:
            commented = False


def headings(path):
    return {anchor(line.lstrip("#")) for _, line in prose_lines(path.read_text().splitlines()) if line.startswith("#")}


def check(tree, name):
    path = tree.top / name
    for number, line in prose_lines(path.read_text().splitlines()):
        where = f"{name}:{number}"
        if len(line) > COLUMNS and not line.startswith(("|", "#")):
            yield f"{where}: {len(line)} columns, at most {COLUMNS}"
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, part = target.partition("#")
            other = (path.parent / file) if file else path
            if not other.exists():
                yield f"{where}: the link to {target} leads nowhere"
            elif part and part not in headings(other):
                yield f"{where}: {target}: no such heading"
        for case in CASE.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)):
            if not tree.has_case(case):
                yield f"{where}: {case}: no test case has this name"
        for text in words(line):
            if tree.is_path(text):
                for one in spellings(text):
                    if not tree.has(one) and not (path.parent / one).exists():
                        yield f"{where}: `{one}` is not in the tree"


def main():
    tree = Tree(pathlib.Path(sys.argv[1]).resolve())
    documents = [name for name in tree.files if name.endswith(".md")]
    wrong = [line for name in documents for line in check(tree, name)]
    print("\n".join(wrong) if wrong else f"{len(documents)} documents: columns, links and paths are right")
    return 1 if wrong or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
