# SPDX-License-Identifier: BSD-3-Clause
"""The report of the functions that are not implemented, as a Markdown table."""


def report(functions, sources):
    chapters = {}
    for function in functions:
        for name, _ in function.variants():
            row = chapters.setdefault(function.chapter, [0, 0, []])
            row[0] += 1
            if sources.covers(function, name):
                row[1] += 1
            else:
                row[2].append("MPI_" + name)
    lines = ["| table | functions | implemented | not implemented |", "|---|---|---|---|"]
    for chapter, (total, done, missing) in sorted(chapters.items()):
        lines.append(f"| {chapter} | {total} | {done} | {'all' if not done else ', '.join(missing) or 'none'} |")
    total, done = (sum(row[i] for row in chapters.values()) for i in (0, 1))
    return "\n".join(lines + [f"| all | {total} | {done} | {total - done} |", ""])
