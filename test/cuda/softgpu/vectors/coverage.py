#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""coverage.py [--check] GENERATOR VECTORS CENSUS TESTS... -- TABLES...: which forms of instructions have vectors.

GENERATOR is the engine's generate.py, whose "forms" of TABLES are those that the engine decodes by table; VECTORS
prints form and number of vectors with --count; TESTS are the engine's tests by hand, whose PTX text is searched for
the rest. Prints base opcode, forms of the engine's tables, forms with vectors, vectors, forms of the census, and what
of them lacks vectors. --check: fails if a form of the tables has no vectors, or one of the census neither vectors nor a test by hand;
opcodes that the engine does not decode at all are told, and are no failure.
"""
import collections
import os
import re
import subprocess
import sys


def opcode(form):
    return form.split('.')[0]


def read_arguments(arguments):
    check = arguments[:1] == ['--check']
    arguments = arguments[check:]
    split = arguments.index('--')
    generator, vectors, census, *tests = arguments[:split]
    return check, generator, vectors, census, tests, arguments[split + 1:]


def engine_forms(generator, tables):
    command = [sys.executable, generator, 'forms', *tables]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {form for form in re.findall(r'^\t{ "([^"]+)"', text, re.M) if not form.startswith('@')}


def decoded_opcodes(generator):
    with open(os.path.join(os.path.dirname(generator), 'decode', 'decode.c'), encoding='utf-8') as source:
        return set(re.findall(r'^\t{ "([a-z0-9]+)", decode_', source.read(), re.M))


def vector_counts(vectors):
    counts = collections.Counter()
    text = subprocess.run([vectors, '--count'], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        form, count = line.split()
        counts[form] += int(count)
    return counts


def census_forms(path):
    with open(path, encoding='ascii') as text:
        return {line.split()[0]: int(line.split()[2]) for line in text if line.strip() and not line.startswith('#')}


def hand_tests(paths):
    """Instructions in the PTX text of tests, by form and by opcode: the files' names."""
    found = collections.defaultdict(set)
    for path in paths:
        with open(path, encoding='utf-8') as source:
            strings = ' '.join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', source.read()))
        # The rest of a form may be put in by printf: then the opcode counts.
        for form in re.findall(r'\b([a-z][a-z0-9]*(?:\.[a-z0-9_:]+)*)(?=[ ;.%])', strings):
            found[form].add(path.rsplit('/', 1)[-1])
            found[opcode(form)].add(path.rsplit('/', 1)[-1])
    return found


def main():
    check, generator, vectors, census, tests, tables = read_arguments(sys.argv[1:])
    engine, counts, census, by_hand = (engine_forms(generator, tables), vector_counts(vectors), census_forms(census),
                                       hand_tests(tests))
    decoded = decoded_opcodes(generator) | {opcode(form) for form in engine}
    missing_engine = sorted(engine - set(counts))
    missing_census = []
    print(f'{"opcode":12}{"decoded":>9}{"forms":>7}{"vectors":>10}{"census":>8}  without vectors of their own')
    for name in sorted({opcode(form) for form in [*engine, *counts, *census]}):
        of_census = [form for form in census if opcode(form) == name]
        forms = [form for form in counts if opcode(form) == name]
        without = [form for form in of_census if form not in counts]
        notes = []
        for form in without:
            files = by_hand.get(form) or by_hand.get(name)
            if name not in decoded:
                files = ['not decoded']
            notes.append(f'{form} ({", ".join(sorted(files)) if files else "NOTHING"})')
            if not files:
                missing_census.append(form)
        notes += [f'{form} (NOTHING)' for form in missing_engine if opcode(form) == name]
        print(f'{name:12}{sum(opcode(form) == name for form in engine):9}{len(forms):7}'
              f'{sum(counts[form] for form in forms):10}{len(of_census):8}  {"; ".join(notes)}'.rstrip())
    print(f'{len(engine)} forms by the tables, {len(missing_engine)} of them without vectors; {len(counts)} forms with '
          f'{sum(counts.values())} vectors; {len(census)} forms in the census, {len(missing_census)} without any test')
    if check and (missing_engine or missing_census):
        sys.exit(1)


main()
