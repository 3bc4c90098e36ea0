#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""generate.py handlers NAME.table | forms | tables | single_lane  TABLES... > out: the lane operations of the tables in C.

handlers: one function for each different expression of a table, and the array of them by number: a source file that is
compiled once for each instruction set. forms: the mnemonics of all tables, sorted, with table and number, operand
letters and rounding mode. tables: OPS_TABLE(name) for each table, in the order of the command line. single_lane: for each
operation that is marked so, SINGLE_LANE_OP(table, number, statements) with what it does to one lane, for single_lane.c.

Notation: a line is "mnemonic | result = sources | expression [| active] [| single_lane]". With "active" only active lanes are
computed. A path of one lane, as divergence leaves them, computes that lane by itself: what programs use most is marked
"single_lane" and part of those paths' own interpreter, the rest do it in their handler.

[x,y]   one mnemonic each; $1 $2 ... is what the group gave, or, for name:text, the text
{rnd}   nothing or .rn, and .rz .rm .rp       {rnd!}  one of .rn .rz .rm .rp       {dir}  one of .rz .rm .rp
{ftz}   nothing or .ftz: subnormal f32 sources and results become zero of their sign
{ftz16} nothing or .ftz: the same of f16, or of the two in a u32
{sat}   nothing or .sat: the result is clamped to 0 ... 1, NaN to 0
{sat16} {relu16} {finite16}: nothing or .sat, .relu, .satfinite of an f16 or of the two in a u32
{relubf} {finitebf}: nothing or .relu, .satfinite of a bf16 or of the two in a u32
T U S   the type of the last group; unsigned, signed of the same width; W U2: twice as wide, W signed like T
operands: result = sources; p is a predicate, imm an immediate. a b c d name the sources in the expression.
"""
import itertools
import os
import re
import sys

C_TYPES = {'u8': 'uint8_t', 's8': 'int8_t', 'u16': 'uint16_t', 's16': 'int16_t', 'u32': 'uint32_t', 's32': 'int32_t',
           'u64': 'uint64_t', 's64': 'int64_t', 'f32': 'float', 'f64': 'double', 'f16': 'uint16_t', 'bf16': 'uint16_t'}
LETTERS = {'u8': 'h', 's8': 'h', 'u16': 'h', 's16': 'h', 'u32': 'w', 's32': 'w', 'u64': 'l', 's64': 'l',
           'f32': 'f', 'f64': 'd', 'f16': 'e', 'bf16': 'e', 'p': 'p', 'imm': 'i'}
ROUNDINGS = {'.rn': 0, '.rz': 1, '.rm': 2, '.rp': 3}
OPTIONS = {'rnd': ['', '.rn', '.rz', '.rm', '.rp'], 'rnd!': ['.rn', '.rz', '.rm', '.rp'], 'dir': ['.rz', '.rm', '.rp'],
           'ftz': ['', '.ftz'], 'ftz16': ['', '.ftz'], 'sat': ['', '.sat']}
# Options of narrow results: the word, and the function of one and of the two in a word.
NARROW = {'finite16': ('.satfinite', 'finite_half', 'finite_halves'),
          'finitebf': ('.satfinite', 'finite_bfloat', 'finite_bfloats'),
          'sat16': ('.sat', 'saturate_half', 'saturate_halves'), 'relu16': ('.relu', 'relu_half', 'relu_halves'),
          'relubf': ('.relu', 'relu_bfloat', 'relu_bfloats')}
OPTIONS.update({option: ['', word[0]] for option, word in NARROW.items()})
PART = re.compile(r'\[([^]]*)\]|\{([^}]*)\}')


def width(name):
    return int(re.sub(r'\D', '', name.replace('f16x2', 'f32').replace('16x2', '32')))


def expand(pattern):
    """Yields (mnemonic, values of the groups, options) for each combination."""
    pieces, at = [], 0
    for match in PART.finditer(pattern):
        pieces.append([(pattern[at:match.start()], None, None)])
        if match.group(1) is not None:
            choices = []
            for item in match.group(1).split(','):
                name, _, text = item.partition(':')
                choices.append((name, (name, text if ':' in item else name), None))
            pieces.append(choices)
        else:
            option = match.group(2)
            pieces.append([(value, None, (option, value)) for value in OPTIONS[option]])
        at = match.end()
    pieces.append([(pattern[at:], None, None)])
    for combination in itertools.product(*pieces):
        yield (''.join(part[0] for part in combination), [part[1] for part in combination if part[1]],
               dict(part[2] for part in combination if part[2]))


def type_words(groups):
    """What T, U, S, W and U2 stand for, by the last group that names a type."""
    words = {}
    for name, _ in groups:
        if re.fullmatch(r'b?f?[bus]?\d+(x2)?', name):
            bits = width(name)
            kind = 'f' if name.startswith('f') else 's' if name.startswith('s') else 'u'
            words = {'T': f'{kind}{bits}', 'U': f'u{bits}', 'S': f's{bits}',
                     'W': f'{"s" if kind == "s" else "u"}{bits * 2}', 'U2': f'u{bits * 2}'}
    return words


def substitute(text, groups, words, in_code):
    def group(match):
        name, value = groups[int(match.group(2)) - 1]
        if match.group(1):
            return f'u{width(name)}'
        return value
    text = re.sub(r'\$(U?)(\d)', group, text)
    text = re.sub(r'\$([TUSW])\b|\$(T|U|S|W)(?=_)', lambda m: words[m.group(1) or m.group(2)], text)

    def word(match):
        name = words.get(match.group(0), match.group(0))
        return C_TYPES.get(name, name) if in_code else name
    return re.sub(r'\b(T|U2|U|S|W)\b', word, text)


class Form:
    def __init__(self, mnemonic, result, sources, expression, marks, rounding):
        self.mnemonic, self.result, self.sources = mnemonic, result, sources
        self.expression, self.marks, self.rounding = expression, marks, rounding
        self.letters = ''.join(LETTERS[t] for t in [result] + sources)
        self.key = (result, tuple(sources), expression, marks)


def marks_of(rest):
    """What follows the expression, and the expression."""
    marks = []
    while match := re.search(r'\|\s*(active|single_lane)$', rest):
        marks.append(match.group(1))
        rest = rest[:match.start()].strip()
    return tuple(sorted(marks)), rest


def forms_of_line(line):
    fields = [field.strip() for field in line.split('|', 2)]
    pattern, operands, rest = fields
    marks, rest = marks_of(rest)
    for mnemonic, groups, options in expand(pattern):
        words = type_words(groups)
        result, _, sources = substitute(operands, groups, words, False).partition('=')
        result, sources = result.strip(), sources.split()
        expression = substitute(rest, groups, words, True)
        if options.get('ftz'):
            for name, kind in zip('abcd', sources):
                if kind == 'f32':
                    expression = re.sub(rf'\b{name}\b', f'flush({name})', expression)
            if result == 'f32':
                expression = f'flush({expression})'
        if options.get('ftz16'):
            flushes = {'f16': 'flush_half', 'u32': 'flush_halves'}
            for name, kind in zip('abcd', sources):
                expression = re.sub(rf'\b{name}\b', f'{flushes[kind]}({name})', expression)
            if result in flushes:
                expression = f'{flushes[result]}({expression})'
        for option, (_, of_one, of_two) in NARROW.items():
            if options.get(option):
                expression = f'{of_two if result == "u32" else of_one}({expression})'
        if options.get('sat'):
            expression = f'{"saturate" if result == "f32" else "saturate_f64"}({expression})'
        rounding = ROUNDINGS.get(options.get('rnd') or options.get('rnd!') or options.get('dir') or '.rn')
        yield Form(mnemonic, result, sources, expression, marks, rounding)


def read_tables(paths):
    """The forms of all tables by mnemonic; a number for each different operation of a table."""
    forms, tables = {}, []
    for path in paths:
        ops = {}
        with open(path, encoding='ascii') as table:
            for number, line in enumerate(table, 1):
                line = line.strip()
                if not line or line.startswith('#'):
                    continue
                for form in forms_of_line(line):
                    if form.mnemonic in forms:
                        sys.exit(f'{path}:{number}: {form.mnemonic} stands twice in the tables')
                    forms[form.mnemonic] = form
                    form.table = len(tables)
                    form.op = ops.setdefault(form.key, len(ops))
        tables.append(ops)
    return forms, tables


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def row_type(kind):
    """The C type of the cells that values of a type are kept in."""
    return 'int16_t' if kind == 's8' else 'uint16_t' if LETTERS[kind] == 'h' else C_TYPES[kind]


def single_lane_op(table, op, result, sources, expression):
    """One line for single_lane.c, which defines CELL, TRUE_AT and SET_AT."""
    body = []
    for n, (name, kind) in enumerate(zip('abcd', sources), 1):
        if kind == 'imm':
            body.append('uint32_t imm = (uint32_t)insn->imm;')
        elif kind == 'p':
            body.append(f'bool {name} = TRUE_AT({n});')
        else:
            row = 'uint16_t' if LETTERS[kind] == 'h' else C_TYPES[kind]
            body.append(f'{C_TYPES[kind]} {name} = ({C_TYPES[kind]})CELL({row}, {n});')
    if result == 'p':
        negation = re.fullmatch('~(.*)', expression) if all(kind == 'p' for kind in sources) else None
        body.append(f'SET_AT(0, {"!" + negation.group(1) if negation else expression});')
    else:
        row = row_type(result)
        body.append(f'CELL({row}, 0) = ({row})({C_TYPES[result]})({expression});')
    return f'SINGLE_LANE_OP({table}, {op}, {" ".join(body)})'


def handler(op, result, sources, expression, marks):
    active, in_handler = 'active' in marks, 'single_lane' not in marks
    lines = [f'HANDLER(op_{op})', '{']
    rows, loads, single_lane = [], [], []  # of the sources: before a loop, in it, and for a path that is one lane
    for n, (name, kind) in enumerate(zip('abcd', sources), 1):
        if kind == 'imm':
            loads.append('\t\tuint32_t imm = (uint32_t)insn->imm;')
            single_lane.append(loads[-1])
        elif kind == 'p' and result == 'p':
            lines.append(f'\tuint32_t {name} = *SOURCE(uint32_t, {n});')
        elif kind == 'p':
            rows.append(f'\tuint32_t mask_{name} = *SOURCE(uint32_t, {n});')
            loads.append(f'\t\tbool {name} = (mask_{name} & lane_bits[lane]) != 0;')
            single_lane.append(f'\t\tbool {name} = (*SOURCE(uint32_t, {n}) & warp->mask) != 0;')
        else:
            row = 'uint16_t' if LETTERS[kind] == 'h' else C_TYPES[kind]
            rows.append(f'\tconst {row} *row_{name} = SOURCE({row}, {n});')
            loads.append(f'\t\t{C_TYPES[kind]} {name} = ({C_TYPES[kind]})row_{name}[lane];')
            single_lane.append(f'\t\t{C_TYPES[kind]} {name} = ({C_TYPES[kind]})SINGLE_LANE({row}, {n});')
    if re.search(r'\blane\b', expression):
        single_lane.insert(0, '\t\tint32_t lane = warp->alone;')
    if result == 'p' and all(kind == 'p' for kind in sources):
        lines.append(f'\tpredicate_set(warp, insn->r[0], {expression});')
    elif result == 'p':
        if in_handler:
            lines += ['\tif (warp->cells4) {'] + single_lane
            lines += [f'\t\tpredicate_set(warp, insn->r[0], ({expression}) ? warp->mask : 0);', '\t\treturn insn + 1;',
                      '\t}']
        lines += rows + ['\t_Alignas(64) int32_t truth[WARP_LANES];', '\tALL_LANES {'] + loads
        lines += [f'\t\ttruth[lane] = -(int32_t)({expression});', '\t}',
                  '\tpredicate_set(warp, insn->r[0], mask_of(truth));']
    else:
        row = row_type(result)
        value = f'({row})({C_TYPES[result]})({expression})'
        rows.append(f'\t{row} *row = RESULT({row}, 0);')
        if active:
            lines += rows + ['\tfor_each_lane(lane, warp->mask) {'] + loads + [f'\t\trow[lane] = {value};', '\t}']
        else:
            lines += ['\tif (warp->mask == FULL_MASK) {'] + rows + ['\tALL_LANES {'] + loads
            lines += [f'\t\trow[lane] = {value};', '\t}']
            if in_handler:
                lines += ['\t} else if (warp->cells4) {'] + single_lane + [f'\t\tSINGLE_LANE({row}, 0) = {value};']
            lines += ['\t} else {'] + rows
            lines += ['\tconst int32_t *lanes = warp->lanes;', '\tALL_LANES {'] + loads
            chosen = f'({row})((value & lanes[lane]) | (row[lane] & ~lanes[lane]))'
            if row in ('float', 'double'):
                chosen = 'lanes[lane] ? value : row[lane]'
            lines += [f'\t\t{row} value = {value};', f'\t\trow[lane] = {chosen};', '\t}', '\t}']
    return lines + ['\treturn insn + 1;', '}', '']


def main():
    what, *paths = sys.argv[1:]
    forms, tables = read_tables(paths)
    print('/* SPDX-License-Identifier: BSD-3-Clause */')
    print(f'/* Generated by generate.py from {", ".join(os.path.basename(path) for path in paths)}. */')
    if what == 'handlers':
        print('#include "cuda_remote/softgpu/exec/lanes/lanes.h"\n')
        for key, op in tables[0].items():
            print('\n'.join(handler(op, *key)))
        print(f'insn_handler *const LANES_NAME(ops_{name_of(paths[0])})[] = {{')
        print(',\n'.join(f'\top_{op}' for op in range(len(tables[0]))))
        print('};')
    elif what == 'forms':
        for mnemonic in sorted(forms):
            form = forms[mnemonic]
            print(f'\t{{ "{mnemonic}", "{form.letters}", {form.table}, {form.op}, {form.rounding} }},')
    elif what == 'single_lane':
        for path, table in zip(paths, tables):
            for (result, sources, expression, marks), op in table.items():
                if 'single_lane' in marks:
                    print(single_lane_op(name_of(path), op, result, sources, expression))
    else:
        print('\n'.join(f'OPS_TABLE({name_of(path)})' for path in paths))


main()
