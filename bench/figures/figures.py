#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""figures.py [--best-chunk] DOCS: makes the figures' CSV and PNG files in DOCS/figures of what figures.sh measured
there, their tables in DOCS/BENCHMARKS.md, and checks the order of the designs. With --best-chunk it only tells the
chunk size that is best.

PNG files need gnuplot (Debian: gnuplot-nox); without it there are none, and a line says so.
"""
import csv
import pathlib
import shutil
import statistics
import subprocess
import sys
import textwrap

DESIGNS = ("basic", "piggyback", "pipeline", "zerocopy")
BEGIN, END = "<!-- figures: begin, written by bench/figures/figures.py -->", "<!-- figures: end -->"
NAS_DESIGNS = {"pipeline": "pipelining", "zerocopy": "zero-copy in the channel", "ch3": "zero-copy in CH3"}
RELATIVE = "Mop/s, of pipelining's"
LARGE = 512 * 1024  # bytes; messages from here on are large: the order of the designs is checked by them


class Figure:
    """A plot: series over sizes. series: name -> {x: y}."""

    def __init__(self, name, title, unit, series, logy=True, xlabel="message size"):
        self.name, self.title, self.unit, self.series, self.logy, self.xlabel = name, title, unit, series, logy, xlabel

    def xs(self):
        return sorted({x for points in self.series.values() for x in points})

    def rows(self):
        for x in self.xs():
            yield [x] + [points.get(x) for points in self.series.values()]


def read(folder, name):
    path = folder / f"{name}.csv"
    if not path.exists():
        sys.exit(f"figures: {path} is missing: run figures.sh without --only")
    with open(path, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def series(rows, column, key, label=str, least=0, most=1 << 62):
    """{label(row[key]): {size: row[column]}} of the rows of these sizes."""
    result = {}
    for row in rows:
        if row[key] and row[column] and least <= int(row["size"]) <= most:
            result.setdefault(label(row[key]), {})[int(row["size"])] = float(row[column])
    return result


def only(all_series, *names):
    return {name: all_series[name] for name in names if name in all_series}


def size_text(size):
    if isinstance(size, str):
        return size
    for shift, unit in ((20, "M"), (10, "K")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}B"
    return f"{size} B"


def paper_figures(folder):
    latency, bandwidth, chunks = (read(folder, name) for name in ("latency", "bandwidth", "chunks"))
    lat = {**series(latency, "median_us", "design"), **series(latency, "floor_us", "floor", lambda f: f"raw {f}")}
    bw = {**series(bandwidth, "MBps", "design"), **series(bandwidth, "floor_MBps", "floor", lambda f: f"raw {f}")}

    def small(all_series, most):
        return {name: {x: y for x, y in points.items() if x <= most} for name, points in all_series.items()}

    def large(all_series, least):
        return {name: {x: y for x, y in points.items() if x >= least} for name, points in all_series.items()}

    by_chunk = series(chunks, "MBps", "chunk", lambda c: f"chunks of {size_text(int(c))}")
    return [
        Figure("figure04", "Latency of the basic design", "us", only(lat, "basic", "raw RDMA write")),
        Figure("figure05", "Bandwidth of the basic design", "MB/s", only(bw, "basic", "raw RDMA write")),
        Figure("figure06", "Latency of small messages with piggybacking", "us",
               small(only(lat, "basic", "piggyback", "raw RDMA write"), 4096), logy=False),
        Figure("figure07", "Bandwidth of small messages with piggybacking", "MB/s",
               small(only(bw, "basic", "piggyback", "raw RDMA write"), 4096)),
        Figure("figure08", "Bandwidth with pipelining", "MB/s",
               large(only(bw, "basic", "piggyback", "pipeline", "raw RDMA write"), 1024), logy=False),
        Figure("figure09", "Pipelining by the size of chunks", "MB/s", by_chunk, logy=False),
        Figure("figure10", "Latency with zero-copy", "us",
               large(only(lat, "pipeline", "zerocopy", "raw RDMA write"), 1024)),
        Figure("figure11", "Bandwidth with zero-copy", "MB/s",
               large(only(bw, "pipeline", "zerocopy", "raw RDMA write", "raw RDMA read"), 1024), logy=False),
    ]


WAYS = {"none": "channel, eager", "read": "channel, after a rendezvous", "write": "CH3: RDMA write"}


def ch3_figures(folder):
    """Zero-copy in the channel beside that in ch3, and RDMA read beside write."""
    lat, bw = (series(read(folder, f"ch3{name}"), column, "rendezvous", WAYS.get, least=1024)
               for name, column in (("latency", "median_us"), ("bandwidth", "MBps")))
    raw = series(read(folder, "bandwidth"), "floor_MBps", "floor", lambda f: f"raw {f}")
    return [
        Figure("figure13", "Latency: zero-copy in the channel and in CH3", "us", lat),
        Figure("figure14", "Bandwidth: zero-copy in the channel and in CH3", "MB/s", bw, logy=False),
        Figure("figure15", "Bandwidth of RDMA read and write", "MB/s", only(raw, "raw RDMA read", "raw RDMA write"),
               logy=False),
    ]


def nas_figures(folder):
    """The NAS programs of nas.csv, if there is one: Mop/s of each over that of pipelining in the same turn, median."""
    if not (folder / "nas.csv").exists():
        return []
    rates = {}
    for row in read(folder, "nas"):
        rates.setdefault((int(row["ranks"]), row["design"], row["program"]), []).append(float(row["Mops"]))
    figures = []
    for number_of, ranks in (("figure16", 2), ("figure17", 4)):
        all_series = {NAS_DESIGNS[design]: {} for design in NAS_DESIGNS}
        for (of_ranks, design, program), turns in rates.items():
            if of_ranks == ranks:
                ratios = (rate / base for rate, base in zip(turns, rates[ranks, "pipeline", program]))
                all_series[NAS_DESIGNS[design]][program] = statistics.median(ratios)
        if any(all_series.values()):
            figures.append(Figure(number_of, f"NAS programs on {ranks} ranks", RELATIVE, all_series, False, ""))
    return figures


def sweep_figures(folder):
    rows = read(folder, "sweep")

    def queue_pairs(n):
        return f"{n} queue pair" + ("s" if int(n) > 1 else "")

    return [Figure("sweep_qps", "Queue pairs of a connection", "MB/s", series(rows, "MBps", "qps", queue_pairs)),
            Figure("sweep_depth", "Requests under way per queue pair", "MB/s",
                   series(rows, "MBps", "depth", lambda n: f"depth {n}"))]


def number(value):
    return "" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def write_csv(folder, figure):
    with open(folder / f"{figure.name}.csv", "w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["size" if figure.xlabel else "program"] + [f"{name} {figure.unit}" if figure.xlabel else name for name in figure.series])
        for row in figure.rows():
            writer.writerow([row[0]] + [number(value) for value in row[1:]])


def bars(folder, figure):
    columns = ", ".join(f'"{folder / figure.name}.csv" using {i}:xtic(1) title "{name}"'
                        for i, name in enumerate(figure.series, 2))
    subprocess.run(["gnuplot"], input=f"""
set terminal png size 720,440 font ",11"
set output "{folder / figure.name}.png"
set datafile separator ","
set title "{figure.title} (libibverbs double, no model of time)"
set style data histogram
set style fill solid 0.6 border
set ylabel "{figure.unit}"
set yrange [0:*]
set grid ytics
set key top left
plot {columns}
""", text=True, check=True)


def plot(folder, figure):
    if figure.unit == RELATIVE:
        return bars(folder, figure)
    xs = figure.xs()
    step = max(1, len(xs) // 7)
    ticks = ", ".join(f'"{size_text(x)}" {x}' for x in xs[::step])
    lines = ", ".join(f'"{folder / figure.name}.csv" using 1:{i} with linespoints lw 2 ps 0.8 title "{name}"'
                      for i, name in enumerate(figure.series, 2))
    script = f"""
set terminal png size 720,440 font ",11"
set output "{folder / figure.name}.png"
set datafile separator ","
set title "{figure.title} (libibverbs double, modelled link)"
set logscale x 2
set xtics ({ticks})
set xlabel "{figure.xlabel}"
set ylabel "{figure.unit}"
{'set logscale y' if figure.logy else 'set yrange [0:*]'}
set grid
set key {'bottom right' if figure.unit == 'MB/s' and figure.logy else 'top left'}
plot {lines}
"""
    return subprocess.run(["gnuplot"], input=script, text=True, check=True)


def table(figure):
    """In Markdown; long ones with every other size."""
    rows = list(figure.rows())
    if len(rows) > 12:
        rows = rows[::2] + ([rows[-1]] if len(rows) % 2 == 0 else [])
    head = "| " + figure.unit + " | " + " | ".join(figure.series) + " |"
    lines = [head, "|---" * (len(figure.series) + 1) + "|"]
    lines += ["| " + size_text(row[0]) + " | " + " | ".join(number(value) for value in row[1:]) + " |" for row in rows]
    return lines


def gains(figure):
    """As the studies say it: the gain of each size over the first setting, averaged over sizes."""
    names = list(figure.series)
    first = figure.series[names[0]]
    words = []
    for name in names[1:]:
        mean = statistics.mean(figure.series[name][x] / first[x] - 1 for x in first)
        words.append(f"{name} {100 * mean:+.1f} %")
    return f"Mean gain over {names[0]}, all sizes: " + ", ".join(words) + "."


def order(bandwidth):
    """Lines about the order of the designs in bandwidth of large messages, and whether it holds."""
    by_design = series(bandwidth, "MBps", "design", least=LARGE)
    mean = {name: statistics.geometric_mean(by_design[name].values()) for name in DESIGNS}
    ratios = [f"{b} {mean[b] / mean[a]:.2f} x {a}" for a, b in zip(DESIGNS, DESIGNS[1:])]
    holds = all(mean[a] < mean[b] for a, b in zip(DESIGNS, DESIGNS[1:]))
    sizes = f"{size_text(LARGE)} and more"
    return f"Bandwidth of messages of {sizes}, geometric mean: " + ", ".join(ratios) + ".", holds


def best_chunk(folder):
    """The chunk size of most bandwidth for large messages, bytes."""
    by_chunk = series(read(folder, "chunks"), "MBps", "chunk", int, least=LARGE)
    return max(by_chunk, key=lambda chunk: statistics.geometric_mean(by_chunk[chunk].values()))


def binding(bandwidth, rate):
    """Whether the model's link is what limits a bare queue pair, as it should, and not the machine that plays it."""
    floors = series(bandwidth, "floor_MBps", "floor", least=LARGE)
    part = {name: statistics.geometric_mean(points.values()) / rate for name, points in floors.items()}
    words = ", ".join(f"{name}s {100 * value:.0f} %" for name, value in sorted(part.items()))
    return f"A bare queue pair reaches, of the link: {words}.", min(part.values()) >= 0.9


def into_document(path, lines):
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.exit(f"figures: {path} lacks the lines {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


def main():
    if sys.argv[1] == "--best-chunk":
        print(best_chunk(pathlib.Path(sys.argv[2]) / "figures"))
        return 0
    docs = pathlib.Path(sys.argv[1])
    folder = docs / "figures"
    with open(folder / "model.csv", newline="", encoding="ascii") as file:
        model = {row["setting"]: int(row["value"]) for row in csv.DictReader(file)}
    figures = paper_figures(folder) + ch3_figures(folder) + nas_figures(folder) + sweep_figures(folder)
    has_gnuplot = shutil.which("gnuplot") is not None
    if not has_gnuplot:
        print("figures: no PNG files: apt-get install gnuplot-nox")
    said, holds = order(read(folder, "bandwidth"))
    reached, is_bound = binding(read(folder, "bandwidth"), model["HR_VERBS_DOUBLE_RATE_MBPS"])
    model_text = (f"The model of this run: a link of {model['HR_VERBS_DOUBLE_RATE_MBPS']} MB/s, "
                  f"{model['HR_VERBS_DOUBLE_LATENCY_NS'] / 1000:g} us of latency, "
                  f"{model['HR_VERBS_DOUBLE_OVERHEAD_NS'] / 1000:g} us of the link for each request; "
                  f"chunks of {size_text(best_chunk(folder))}, but for figure 9. {reached}")
    lines = [*textwrap.wrap(model_text, 118), "", *textwrap.wrap(said, 118)]
    for figure in figures:
        write_csv(folder, figure)
        if has_gnuplot:
            plot(folder, figure)
        title = figure.title if figure.name.startswith("sweep") else f"Figure {int(figure.name[6:])}: {figure.title}"
        lines += ["", f"### {title}", "", f"![{figure.title}](figures/{figure.name}.png)", ""]
        lines += table(figure)
        if figure.name.startswith("sweep"):
            lines += ["", *textwrap.wrap(gains(figure), 118)]
    into_document(docs / "BENCHMARKS.md", lines)
    print(reached, said, sep="\n")
    for figure in figures:
        if figure.name.startswith("sweep"):
            print(f"{figure.title}: {gains(figure)}")
    print("order: basic < piggyback < pipeline < zerocopy " + ("holds" if holds else "DOES NOT HOLD"))
    if not is_bound:
        print("the machine was too busy, or is too slow, to play this link: these figures are of the machine")
    return 0 if holds and is_bound else 1


if __name__ == "__main__":
    sys.exit(main())
