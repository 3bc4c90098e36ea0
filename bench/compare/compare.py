#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Headrace over shared memory or TCP beside an installed Open MPI, interleaved in one run.

Every contender (headrace's channel, ch3 and MPI, Open MPI in several settings) is alive all the time as two processes that
sleep between cells, pinned to the same two cores. A cell (a test and a size) is measured in rounds; in a round each
contender takes its turn, some milliseconds each, with a flag ping-pong before and behind it that tells where the two
cores stand: near (below 80 ns one way) or far; where all flags of a run lie within a factor of 1.6 of each other, the
machine stood in one placement, and the median says which. For each cell and placement the best setting of Open MPI is
set against the channel: by the medians over the rounds, and (least) by each one's best round.

A setting of Open MPI that ends, or gives no answer, is told with its exit status or signal and what it wrote, started
again once for that cell, and marked there; if it ends once more it takes no part in what follows.
"""
import argparse
import ctypes
import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

BORDER_US = 0.08   # between 26 to 60 ns, the flag within a core, and 110 to 250 between two
SPREAD = 1.6       # of the flag within one placement
BUSY_US = 0.5      # a flag that takes longer waited for somebody else's time on a core
OURS = ("channel", "ch3", "mpi")
ANSWER_S = 60      # how long a contender may take for a turn
PR_SET_PDEATHSIG = 1

# The settings of Open MPI that are tried: MCA parameters, and environment for UCX.
SETTINGS = {
    "vader-cma": ["--mca", "btl_vader_single_copy_mechanism", "cma"],
    "vader-none": ["--mca", "btl_vader_single_copy_mechanism", "none"],
    "vader-none-128k": ["--mca", "btl_vader_single_copy_mechanism", "none",
                        "--mca", "btl_vader_max_send_size", "131072", "--mca", "btl_vader_segment_size", "33554432"],
    "vader-cma-eager32k": ["--mca", "btl_vader_single_copy_mechanism", "cma", "--mca", "btl_vader_eager_limit", "32768",
                           "--mca", "btl_vader_rndv_eager_limit", "32768", "--mca", "btl_vader_fbox_size", "16384"],
    "ucx-cma": ["-x", "UCX_TLS=posix,self,cma"],
    "ucx-posix": ["-x", "UCX_TLS=posix,self"],
    "tcp": ["--mca", "btl_tcp_if_include", "lo"],
}
# What a layer must reach: latency at most, bandwidth and message rate at least, as ratios to the best setting.
TARGETS = {"shm": (0.8, 1.2), "tcp": (0.9, 1.1)}


def mpirun_line(options, setting, program, folder, name):
    if setting.startswith("ucx"):
        pml = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
    else:
        pml = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp" if setting == "tcp" else "self,vader"]
    if options.backing:
        pml += ["--mca", "btl_vader_backing_directory", options.backing]
    return [options.mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", *pml,
            "--mca", "orte_base_help_aggregate", "0", *SETTINGS[setting], program, folder, name]


def die_with_driver():
    """In a child, before it runs: a driver that was killed leaves nobody spinning."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Contender:
    """One contender's processes, and the pipes they are commanded through."""

    def __init__(self, name, line, folder):
        self.name = name
        self.line = line
        self.folder = folder
        self.restarted = []  # cells (test, size) for which it was started again
        self.start()

    def start(self):
        pipes = [f"{self.folder}/{self.name}.{suffix}" for suffix in ("0", "1", "out")]
        for pipe in pipes:
            if os.path.exists(pipe):
                os.unlink(pipe)  # with what an earlier start left in it
            os.mkfifo(pipe)
        self.log = open(f"{self.folder}/{self.name}.log", "w+", encoding="utf-8", errors="replace")
        # A child's death signal comes when the thread that made it ends: this one is the driver's only one.
        self.process = subprocess.Popen(self.line, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        start_new_session=True, preexec_fn=die_with_driver)
        # Read-write, so that opening does not wait for a contender that failed to start.
        self.commands = [open(os.open(pipe, os.O_RDWR), "w", buffering=1, encoding="ascii") for pipe in pipes[:2]]
        self.answers = os.open(pipes[2], os.O_RDWR | os.O_NONBLOCK)
        self.pending = b""

    def measure(self, test, size, turns, window, touch):
        """One command; its answer, or None if the contender has ended or does not answer."""
        for pipe in self.commands:
            pipe.write(f"{test} {size} {turns} {window} {touch}\n")
        poller = select.poll()
        poller.register(self.answers, select.POLLIN)
        for _ in range(10 * ANSWER_S):
            if b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                return json.loads(line)
            if poller.poll(100):
                self.pending += os.read(self.answers, 4096)
            elif self.process.poll() is not None:
                return None
        return None

    def close(self):
        for pipe in self.commands:
            try:
                pipe.write("\n")
                pipe.close()
            except OSError:
                pass
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.log.close()
        os.close(self.answers)

    def how_it_ended(self):
        """Its exit status or signal, or that it still runs, and what it wrote."""
        status = self.process.poll()
        if status is None:
            how = f"gave no answer in {ANSWER_S} s"
        elif status < 0:
            how = f"ended by signal {-status} ({signal.Signals(-status).name})"
        else:
            how = f"ended with exit status {status}"
        return f"{how}; it wrote:\n{self.said() or '(nothing)'}"

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read().strip()

    def restart(self, cell):
        self.restarted.append(cell)
        self.close()
        self.start()


def place_answers(cells):
    """Sets the placement of each answer of the run: near, far, or mixed where it changed during the turn or somebody
    else had one of the cores for a part of it; such an answer counts for nothing."""
    every = [answer for _, _, answers in cells for rounds in answers.values() for answer in rounds]
    flags = sorted(answer[key] for answer in every for key in ("flag_before", "flag_after"))
    low, high = (flags[int(q * (len(flags) - 1))] for q in (0.05, 0.95))
    one = high < SPREAD * low
    for answer in every:
        pair = answer["flag_before"], answer["flag_after"]
        near = [(statistics.median(flags) if one else flag) < BORDER_US for flag in pair]
        disturbed = max(pair) > BUSY_US or max(pair) > SPREAD * min(pair)
        answer["placement"] = "mixed" if disturbed or near[0] != near[1] else "near" if near[0] else "far"


def start(options, folder):
    with open(f"{folder}/flags", "wb") as flags:
        flags.truncate(4096)
    here = os.path.join(options.programs, "")
    lines = {"mpi": [options.mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2",
                     f"{here}compare_hrmpi", folder, "mpi"]}
    contenders = [Contender(layer, lines.get(layer, [f"{here}compare_headrace", folder, layer, layer]), folder)
                  for layer in OURS if layer in options.layers]
    for setting in options.settings:
        line = mpirun_line(options, setting, f"{here}compare_mpi", folder, setting)
        contenders.append(Contender(setting, line, folder))
    alive = []
    for contender in contenders:
        if contender.measure("lat", 8, 100, 1, 0):
            alive.append(contender)
        elif contender.name in OURS:
            sys.exit(f"compare: {contender.name} did not start: it {contender.how_it_ended()}")
        else:
            print(f"compare: setting {contender.name} is not available here", file=sys.stderr)
            if options.verbose:
                print(f"compare: it {contender.how_it_ended()}", file=sys.stderr)
            contender.close()
    return alive


def measure_contender(contender, test, size, turns, window, options):
    """An answer. One of Open MPI's that has ended is told and started again once a cell; None: it ended again."""
    while True:
        answer = contender.measure(test, size, turns, window, options.touch)
        if answer:
            return answer
        print(f"compare: {contender.name}, in {test} of {size}, {contender.how_it_ended()}", file=sys.stderr)
        if contender.name in OURS:
            sys.exit(1)
        if (test, size) in contender.restarted:
            return None
        contender.restart((test, size))


def measure_cell(contenders, test, size, options):
    """Lists of answers by contender, one for each round. A contender that ended twice is taken out of the list."""
    window = 1 if test == "lat" else options.window
    answers, turns = {}, {}

    def measure(contender, count):
        answer = measure_contender(contender, test, size, count, window, options)
        if not answer:
            contenders.remove(contender)
            answers.pop(contender.name, None)
            contender.close()
        return answer

    for contender in list(contenders):
        first = measure(contender, 20 if test == "lat" else 2)
        if first:
            each = first["us"] * (2 if test == "lat" else window)
            turns[contender] = max(2, int(options.milliseconds * 1000 / each))
            answers[contender.name] = []
    for _ in range(options.rounds):
        for contender in list(contenders):
            answer = measure(contender, turns[contender])
            if answer:
                answers[contender.name].append(answer)
    return answers


def summarize(test, size, answers, restarted, options):
    """One row a layer of ours and placement that occurred."""
    rows = []
    for layer in (name for name in OURS if name in answers):
        for where in ("near", "far"):
            medians, least = {}, {}
            for name, rounds in answers.items():
                times = [a["us"] for a in rounds if a["placement"] == where]
                if times:
                    medians[name], least[name] = statistics.median(times), min(times)
            theirs = {name: us for name, us in medians.items() if name not in OURS}
            if layer not in medians or not theirs:
                continue
            best = min(theirs, key=theirs.get)
            quickest = min(least[name] for name in theirs)
            flags = [a[key] for a in answers[layer] for key in ("flag_before", "flag_after") if a["placement"] == where]
            rows.append({"test": test, "size": size, "layer": layer, "placement": where, "touch": options.touch,
                         "rounds": sum(a["placement"] == where for a in answers[layer]), "us": medians[layer],
                         "best": best, "best_us": medians[best], "flag_us": statistics.median(flags),
                         # Of times for latency, of rates for the rest: what the text of a target says.
                         "ratio": medians[layer] / medians[best] if test == "lat" else medians[best] / medians[layer],
                         # The same of each contender's best round, which nothing disturbed.
                         "ratio_least": least[layer] / quickest if test == "lat" else quickest / least[layer],
                         "restarted": restarted,
                         "all_us": medians, "all_least_us": least})
    return rows


def show(row, options):
    if options.json:
        print(json.dumps(row), flush=True)
        return
    if row["test"] == "lat":
        figures = f"{row['us']:12.3f} us   {row['best_us']:12.3f} us   "
    elif row["test"] == "rate":
        figures = f"{1 / row['us']:12.3f} M/s  {1 / row['best_us']:12.3f} M/s  "
    else:
        figures = f"{row['size'] / row['us']:12.0f} MB/s {row['size'] / row['best_us']:12.0f} MB/s "
    most, least = TARGETS[options.transport]
    met = row["ratio"] <= most if row["test"] == "lat" else row["ratio"] >= least
    print(f"{row['test']:5}{row['layer']:8}{row['size']:9}  {figures}{row['ratio']:6.2f} {row['ratio_least']:6.2f} "
          f"{'' if met else '(misses)':9}{row['placement']:6}{row['rounds']:3}  {row['flag_us'] * 1000:5.0f} ns  "
          f"{row['best']}{' restarted: ' + ','.join(row['restarted']) if row['restarted'] else ''}", flush=True)


def parse():
    def sizes(text):
        return [int(part[:-1]) << {"k": 10, "m": 20}[part[-1].lower()] if part[-1] in "kKmM" else int(part)
                for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=os.path.dirname(os.path.abspath(__file__)),
                        help="folder with compare_headrace, compare_hrmpi and compare_mpi (a build's bench/compare)")
    parser.add_argument("--mpirun", default=shutil.which("mpirun.openmpi") or shutil.which("mpirun"))
    parser.add_argument("--backing", help="folder of Open MPI's shared memory, where /dev/shm is not to be used")
    parser.add_argument("--tests", default="lat,bw,rate", help="of lat, bw and rate (bw of 8 bytes)")
    parser.add_argument("--sizes", type=sizes, default=sizes("8,1k,16k,64k,256k,1M,4M"))
    parser.add_argument("--layers", default="channel,ch3,mpi", help="of headrace's")
    parser.add_argument("--transport", choices=TARGETS, default="shm", help="of headrace; tcp: only the layer mpi")
    parser.add_argument("--settings", help="of Open MPI's (default: all of the transport)")
    parser.add_argument("--window", type=int, default=64, help="messages under way in bw and rate (as osu_bw)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=15, help="of one contender's turn, about")
    parser.add_argument("--touch", action="store_const", const=1, default=0, help="the receiver reads what it received")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument("--verbose", action="store_true", help="say why a setting is not available")
    options = parser.parse_args()
    of_tcp = options.transport == "tcp"
    if options.settings is None:
        options.settings = ",".join(name for name in SETTINGS if (name == "tcp") == of_tcp)
    options.settings = [name for name in options.settings.split(",") if name]
    if set(options.settings) - set(SETTINGS):
        parser.error(f"--settings: of {', '.join(SETTINGS)}")
    options.layers = ["mpi"] if of_tcp else options.layers.split(",")
    if not os.path.exists(os.path.join(options.programs, "compare_hrmpi")):  # a build without PMIx
        options.layers = [layer for layer in options.layers if layer != "mpi"]
    options.tests = options.tests.split(",")
    if set(options.layers) - set(OURS) or set(options.tests) - {"lat", "bw", "rate"}:
        parser.error("--layers of channel, ch3, mpi; --tests of lat, bw, rate")
    return options


def ended(number, _):
    """So that a driver that is told to end does not leave its contenders spinning."""
    sys.exit(128 + number)


def main():
    options = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
    if not options.mpirun or not os.path.exists(os.path.join(options.programs, "compare_mpi")):
        print("SKIP: no Open MPI to compare with (Debian: openmpi-bin and libopenmpi-dev)")
        sys.exit(77)
    if len(os.sched_getaffinity(0)) < 2:
        print("SKIP: two cores are needed")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="headrace-compare.") as folder:
        # Two programs mpirun that start at the same time can both create Open MPI's folder in TMPDIR; then one of them fails.
        os.environ["TMPDIR"] = folder
        if options.transport == "tcp":
            os.environ["HEADRACE_TRANSPORT"] = "tcp"
        contenders = start(options, folder)
        if all(contender.name in OURS for contender in contenders):
            sys.exit("compare: no setting of Open MPI works here")
        everybody, cells = list(contenders), []
        try:
            for test in options.tests:
                for size in [8] if test == "rate" else options.sizes:
                    answers = measure_cell(contenders, "lat" if test == "lat" else "bw", size, options)
                    cells.append((test, size, answers))
        finally:
            for contender in contenders:
                contender.close()
        place_answers(cells)
        if not options.json:
            print(f"{'test':5}{'layer':8}{'bytes':>9}  {'headrace':>15}   {'best Open MPI':>14}    {'ratio':>6} "
                  f"{'least':>6} "
                  f"{'':9}{'place':6}{'n':>3}  {'flag':>5}     setting")
        for test, size, answers in cells:
            command = "lat" if test == "lat" else "bw"
            restarted = [contender.name for contender in everybody if (command, size) in contender.restarted]
            for row in summarize(test, size, answers, restarted, options):
                show(row, options)


if __name__ == "__main__":
    main()
