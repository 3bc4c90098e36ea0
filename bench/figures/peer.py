#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""peer.py DOCS: makes the figures of copies between two servers of what peer.sh measured in DOCS/figures, their tables in
DOCS/BENCHMARKS.md, and checks the order of the versions.
"""
import csv
import pathlib
import shutil
import statistics
import sys
import textwrap

import figures
from figures import Figure, read, size_text

BEGIN, END = "<!-- peer figures: begin, written by bench/figures/peer.py -->", "<!-- peer figures: end -->"
LARGE = 4 << 20  # bytes; copies from here on are large: the order of the versions is checked by them
MIDDLE = 256 << 10  # from here on hybrid is compared with the best version; below, all versions are the same messages
BAR = 0.95
# (a, b): the bandwidth of b is more than that part of a's.
ORDER = [("1", "2a", 1), ("2a", "2b", 1), ("3a", "3b", 1), ("3a", "4a", BAR), ("3b", "4b", BAR)]


def by_version(rows, column):
    result = {}
    for row in rows:
        result.setdefault(row["version"], {})[int(row["size"])] = float(row[column])
    return result


def versions(folder, column):
    """{version: {size: value}}: version 1 of the paper, and the others; "1, kept" is 1 with kept registrations."""
    kept = by_version(read(folder, "peer_versions"), column)
    result = {"1": by_version(read(folder, "peer_registering"), column)["1"], "1, kept": kept.pop("1")}
    return {**result, **kept}


def sweep(folder, name):
    result = {}
    for row in read(folder, name):
        result.setdefault(f"{row['buffers']} buffers", {})[size(row["chunk"])] = float(row["MBps"])
    return result


def size(text):
    return int(text[:-1]) << {"k": 10, "M": 20}[text[-1]]


def part(all_series, least, most):
    return {name: {x: y for x, y in points.items() if least <= x <= most} for name, points in all_series.items()}


def check(bandwidth):
    """Lines about the order of the versions, and whether it holds."""
    large = {name: statistics.geometric_mean(y for x, y in points.items() if x >= LARGE) for name, points in bandwidth.items()}
    wrong = [f"{b} is not faster than {BAR if bar < 1 else 1} x {a}" for a, b, bar in ORDER if large[b] <= bar * large[a]]
    ratios = ", ".join(f"{b} {large[b] / large[a]:.2f} x {a}" for a, b, _ in ORDER)
    least, at = min((points[x] / max(others[x] for others in bandwidth.values()), x)
                    for points in [bandwidth["hybrid"]] for x in points if x >= MIDDLE)
    if least < BAR:
        wrong.append(f"hybrid has {least:.2f} of the best version's bandwidth at {size_text(at)}")
    said = (f"Bandwidth of copies of {size_text(LARGE)} and more, geometric mean: {ratios}. Hybrid has at least {least:.2f} of "
            f"the best version's bandwidth at each size from {size_text(MIDDLE)} on.")
    return said, wrong


def main():
    docs = pathlib.Path(sys.argv[1])
    folder = docs / "figures"
    with open(folder / "peer_model.csv", newline="", encoding="ascii") as file:
        model = {row["setting"]: int(row["value"]) for row in csv.DictReader(file)}
    bandwidth = versions(folder, "MBps")
    made = [
        Figure("peer_latency", "Copies between two servers: time of small copies", "us",
               part(versions(folder, "median_us"), 0, 64 << 10), logy=False, xlabel="size of the copy"),
        Figure("peer_bandwidth", "Copies between two servers: bandwidth", "MB/s", part(bandwidth, 64 << 10, 1 << 62),
               logy=False, xlabel="size of the copy"),
        Figure("peer_buffers_a", "Version 3A: number and size of buffers, copies of 4 MB", "MB/s",
               sweep(folder, "peer_sweep_a"), logy=False, xlabel="size of a buffer"),
        Figure("peer_buffers_b", "Version 3B: number and size of buffers, copies of 4 MB", "MB/s",
               sweep(folder, "peer_sweep_b"), logy=False, xlabel="size of a buffer"),
    ]
    said, wrong = check(bandwidth)
    model_text = (f"The model of this run: a link of {model['HR_VERBS_DOUBLE_RATE_MBPS']} MB/s, GPUDirect RDMA "
                  f"{model['HR_VERBS_DOUBLE_GPU_RATE_MBPS']} MB/s, the bus {model['HEADRACE_SOFTGPU_BUS_MBPS']} MB/s, "
                  f"registering device memory {model['HR_VERBS_DOUBLE_GPU_REG_NS'] / 1e6:g} ms and "
                  f"{model['HR_VERBS_DOUBLE_GPU_REG_NS_PER_MB'] / 1e6:g} ms for each MB.")
    lines = [*textwrap.wrap(model_text, 118), "", *textwrap.wrap(said, 118)]
    lines += [*([""] if wrong else []), *(f"- Not as in the paper: {line}." for line in wrong)]
    for figure in made:
        figures.write_csv(folder, figure)
        if shutil.which("gnuplot"):
            figures.plot(folder, figure)
        lines += ["", f"#### {figure.title}", "", f"![{figure.title}](figures/{figure.name}.png)", "", *figures.table(figure)]
    figures.BEGIN, figures.END = BEGIN, END
    figures.into_document(docs / "BENCHMARKS.md", lines)
    print(said, *wrong, sep="\n")
    print("order: 1 < 2a < 2b, 3a < 3b, 3 <= 4, hybrid best: " + ("DOES NOT HOLD" if wrong else "holds"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
