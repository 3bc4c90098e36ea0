#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times of blocking collectives over shared memory: Headrace beside an installed Open MPI, or Headrace's algorithms.

    collectives.py              compares with Open MPI: a line for each collective and size
    collectives.py --before D   and beside the programs of another build, in D
    collectives.py --propose    measures every algorithm of Headrace's table and prints the fastest for each size

Each round starts the programs one after another, so the compared figures lie seconds apart. With two ranks each figure has the
placement of the two processors beside it: near (a flag takes less than 80 ns one way) or far; figures whose placement changed
count for nothing. Printed are medians over the rounds. On a machine with other work use --quartile and --prefix "chrt -f 1".
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

NEAR_US = 0.08
SPREAD = 1.6       # of the flag before and behind a figure within one placement
COLLECTIVES = "barrier,bcast,reduce,allreduce,reduce_scatter,gather,scatter,allgather,alltoall"
OURS, THEIRS = "collectives_hrmpi", "collectives_mpi"
# With --collectives all: the v and w forms, and nonblocking forms that are waited for at once.
MORE = ("gatherv,scatterv,allgatherv,alltoallv,alltoallw,ibarrier,ibcast,ireduce,iallreduce,iallgather,ialltoall,"
        "igather,iscatter,igatherv,iscatterv")


def placement(before, after):
    if max(before, after) > SPREAD * min(before, after):
        return "mixed"
    return "" if before == 0 else "near" if max(before, after) < NEAR_US else "far"


def run(options, program, algorithms=None, mca=""):
    """{(collective, bytes, placement): us} of one run."""
    line = [options.mpirun, "--allow-run-as-root", "--oversubscribe", *mca.split(), "-n", str(options.ranks),
            *options.prefix.split(), program, options.collectives, options.sizes, str(options.milliseconds)]
    environment = dict(os.environ)
    environment.pop("HEADRACE_MPI_ALGORITHM", None)
    if algorithms:
        environment["HEADRACE_MPI_ALGORITHM"] = algorithms
    with tempfile.TemporaryDirectory(prefix="headrace-collectives.") as folder:
        environment["TMPDIR"] = folder  # for mpirun alone: it fails if another mpirun creates the same folder
        done = subprocess.run(line, stdout=subprocess.PIPE, env=environment, check=False, text=True)
    if done.returncode:
        sys.exit(f"collectives: {program} failed with status {done.returncode}")
    found = {}
    for text in done.stdout.splitlines():
        name, size, mean, quartile, before, after = text.split()
        us = float(quartile if options.quartile else mean)
        found[name, int(size), placement(float(before), float(after))] = us
    return found


def add(results, contender, found):
    for cell, us in found.items():
        results.setdefault(cell, {}).setdefault(contender, []).append(us)


def medians(results):
    return {cell: {name: statistics.median(times) for name, times in contenders.items()}
            for cell, contenders in results.items() if cell[2] != "mixed"}


def compare(options):
    results = {}
    for _ in range(options.rounds):
        if options.before:
            add(results, "before", run(options, os.path.join(options.before, OURS)))
        add(results, "headrace", run(options, os.path.join(options.programs, OURS)))
        add(results, "openmpi", run(options, os.path.join(options.programs, THEIRS), mca=options.mca))
    ours = ["before", "headrace"] if options.before else ["headrace"]
    print(f"{'collective':15}{'bytes':>9} {'place':6}" + "".join(f"{name + ' us':>12}" for name in ours) + f"{'Open MPI us':>12}" +
          "".join(f"{'ratio':>7}{'least':>7}" for name in ours))
    known = COLLECTIVES.split(",") + MORE.split(",")
    for cell in sorted(results, key=lambda cell: (known.index(cell[0]), cell[1:])):
        times = results[cell]
        if cell[2] == "mixed" or len(times) <= len(ours):
            continue
        median = {name: statistics.median(each) for name, each in times.items()}
        print(f"{cell[0]:15}{cell[1]:9} {cell[2]:6}" + "".join(f"{median[name]:12.2f}" for name in [*ours, "openmpi"]) +
              "".join(f"{median[name] / median['openmpi']:7.2f}{min(times[name]) / min(times['openmpi']):7.2f}"
                      for name in ours))


def algorithms_of(options):
    """{collective: [algorithm]}, as headrace-info lists them."""
    done = subprocess.run([options.info, "collectives"], stdout=subprocess.PIPE, check=True, text=True)
    found = {}
    for text in done.stdout.splitlines():
        words = text.split()
        if len(words) >= 4 and words[0] in options.collectives.split(",") and words[3] not in found.get(words[0], []):
            found.setdefault(words[0], []).append(words[3])
    return found


def propose(options):
    algorithms, results = algorithms_of(options), {}
    for _ in range(options.rounds):
        for turn in range(max(len(names) for names in algorithms.values())):
            forced = {collective: names[turn] for collective, names in algorithms.items() if turn < len(names)}
            found = run(options, os.path.join(options.programs, OURS), ",".join(f"{c}={a}" for c, a in forced.items()))
            for cell, us in found.items():
                if cell[0] in forced:
                    results.setdefault(cell, {}).setdefault(forced[cell[0]], []).append(us)
    print(f"{'collective':15}{'bytes':>9} {'place':6} {'fastest':14} all, us ({options.ranks} ranks)")
    for cell, times in sorted(medians(results).items()):
        order = sorted(times, key=times.get)
        every = ", ".join(f"{name} {times[name]:.2f}" for name in order)
        print(f"{cell[0]:15}{cell[1]:9} {cell[2]:6} {order[0]:14} {every}")


def parse():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=here, help="folder with the programs (a build's bench/collectives)")
    parser.add_argument("--info", default=None, help="headrace-info; default: that of the same build")
    parser.add_argument("--mpirun", default=shutil.which("mpirun.openmpi") or shutil.which("mpirun"))
    parser.add_argument("--propose", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--collectives", default=COLLECTIVES, help="names, or all: the v, w and nonblocking forms too")
    parser.add_argument("--sizes", default="8,4096,65536,1048576", help="bytes, of the vector or of one block")
    parser.add_argument("--milliseconds", type=float, default=10, help="of one figure, about")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quartile", action="store_true", help="the lower quartile of the calls instead of their mean")
    parser.add_argument("--prefix", default="", help="words before each program, for example chrt -f 1")
    parser.add_argument("--mca", default="", help="words for Open MPI's mpirun, for example --mca coll ^tuned")
    parser.add_argument("--before", default=None, help="folder with the programs of another build")
    options = parser.parse_args()
    if options.collectives == "all":
        options.collectives = COLLECTIVES + "," + MORE
    options.info = options.info or os.path.join(options.programs, "..", "info", "headrace-info")
    return options


def main():
    options = parse()
    needed = [OURS] + ([] if options.propose else [THEIRS])
    for program in needed:
        if not options.mpirun or not os.path.exists(os.path.join(options.programs, program)):
            print(f"SKIP: {program} or mpirun is missing (Debian: openmpi-bin, libopenmpi-dev and libpmix-dev)")
            sys.exit(77)
    if options.propose:
        propose(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
