#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""census.py FILE.ptx... > census.txt: the forms of instructions in PTX texts: form, occurrences, files."""
import collections
import re
import sys

STATEMENT = re.compile(r'(?:^|[;{}:])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9]*(?:\.[A-Za-z0-9_:]+)*)'
                       r'(?=\s+[^\s=(:]|\s*;)', re.M)


def forms(text):
    text = re.sub(r'//[^\n]*|/\*.*?\*/', '', text, flags=re.S)
    # Directives and initialisers are no statements.
    text = re.sub(r'^\s*\.[^\n]*$', '', text, flags=re.M)
    # Names of parameters stand before their declarations' ends.
    return [form for form in STATEMENT.findall(text) if not re.fullmatch(r'param\d+|retval\d+|[a-z]+_param_\d+', form)]


def main():
    occurrences, files = collections.Counter(), collections.Counter()
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8', errors='replace') as ptx:
            found = forms(ptx.read())
        occurrences.update(found)
        files.update(set(found))
    print('# Forms of instructions in PTX for NVIDIA/cuda-samples and for the toolkit\'s intrinsics, by census.py:')
    print('# form occurrences files')
    for form in sorted(occurrences):
        print(form, occurrences[form], files[form])


main()
