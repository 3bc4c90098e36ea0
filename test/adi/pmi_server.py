# SPDX-License-Identifier: BSD-3-Clause
"""A process manager for tests: starts ranks on this machine and answers PMI-1 or PMI-2.

	pmi_server.py [--fault NAME] [--count] [--survive] VERSION RANKS PROGRAM [ARGUMENT...]

--fault makes one answer wrong (FAULTS below); --count prints the number of requests of each kind; --survive does not end
the other ranks when one has failed. The exit status is that of the first rank that failed, 0 if none did, 3 if the program used PMI in a way that this server does not know.
Source of the protocols: Balaji et al., "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale
Systems", EuroMPI 2010, and the messages of Hydra.
"""
import collections
import os
import selectors
import socket
import subprocess
import sys

# What a fault does: (the commands of PMI-1 and PMI-2 whose answer changes, the bytes to send instead of the right answer). The fault
# "rank" tells the last rank a wrong number of itself. A card begins with the character H, 48 in hexadecimal digits.
FAULTS = {
    "init": (("init",), lambda answer: b"cmd=nonsense rc=0\n"),
    "refused": (("get_maxes", "fullinit"), lambda answer: answer.replace(b"rc=0", b"rc=7")),
    "malformed": (("get_my_kvsname", "job-getid"), lambda answer: b"\x00\xff;;==;\n" * 3),
    "empty": (("get_my_kvsname", "job-getid"), lambda answer: b"\n\n\n\n\n\n\n\n"),
    "truncated": (("get_my_kvsname", "job-getid"), lambda answer: answer[:len(answer) // 2]),
    "long": (("get_my_kvsname", "job-getid"), lambda answer: b"999999" + b"x" * 20000 + b"\n"),
    "end": (("barrier_in", "kvs-fence"), lambda answer: b""),
    "put": (("put", "kvs-put"), lambda answer: answer.replace(b"rc=0", b"rc=5")),
    "value": (("get", "kvs-get"), lambda answer: answer.replace(b"value=48", b"value=zz")),
    "card": (("get", "kvs-get"), lambda answer: answer.replace(b"value=48", b"value=58")),
    "other": (("get", "kvs-get"), lambda answer: answer.replace(b"value=", b"other=")),
}
CLOSES = ("truncated", "end")  # the server closes the connection behind such an answer
MAPPING = "PMI_process_mapping"


class Rank:
    def __init__(self, server, rank):
        self.server, self.rank, self.bytes, self.framed = server, rank, b"", False
        self.socket, theirs = socket.socketpair()
        environment = dict(os.environ, PMI_FD=str(theirs.fileno()), PMI_RANK=str(server.told_rank(rank)),
                           PMI_SIZE=str(server.size), PMI_JOBID="job", HEADRACE_PMI=str(server.version))
        for name in [n for n in environment if n.startswith("PMIX_")]:
            del environment[name]
        self.process = subprocess.Popen(server.command, env=environment, pass_fds=[theirs.fileno()])
        theirs.close()

    def send(self, command, **fields):
        """Sends an answer; fields in the order in which they are given, those of PMI-2 framed by length."""
        fields = dict(fields)
        if self.framed:
            text = "".join(f"{k}={v};" for k, v in {"cmd": command, **fields}.items())
            answer = b"%6d%s" % (len(text), text.encode())
        else:
            answer = (" ".join(f"{k}={v}" for k, v in {"cmd": command, **fields}.items()) + "\n").encode()
        try:
            self.socket.sendall(self.server.spoil(self, answer))
        except OSError:
            pass  # the rank has ended

    def requests(self):
        """The complete requests that have arrived."""
        while self.bytes:
            if self.framed:
                if len(self.bytes) < 6 or len(self.bytes) < 6 + int(self.bytes[:6]):
                    return
                end = 6 + int(self.bytes[:6])
                text, self.bytes, between = self.bytes[6:end], self.bytes[end:], ";"
            else:
                if b"\n" not in self.bytes:
                    return
                text, self.bytes = self.bytes.split(b"\n", 1)
                between = " "
            yield dict(field.split("=", 1) for field in text.decode().split(between) if field)


class Server:
    def __init__(self, version, size, command, fault, survive):
        self.version, self.size, self.command, self.fault = version, size, command, fault
        self.values = {MAPPING: f"(vector,(0,1,{size}))"}
        self.counts = collections.Counter()
        self.waiting, self.status, self.now, self.survive = [], 0, None, survive
        self.ranks = [Rank(self, rank) for rank in range(size)]

    def told_rank(self, rank):
        return self.size if self.fault == "rank" and rank == self.size - 1 else rank

    def spoil(self, rank, answer):
        """The answer to the request self.now, or what the fault makes of it at the last rank."""
        commands, change = FAULTS.get(self.fault, ((), None))
        if self.now not in commands or rank.rank != self.size - 1 or (self.now in ("get", "kvs-get") and self.key == MAPPING):
            return answer
        return change(answer)

    def handle(self, rank, request):
        command = self.now = request.get("cmd")
        self.counts[command] += 1
        self.key = request.get("key")
        handler = getattr(self, "on_" + command.replace("-", "_"), None)
        if not handler:
            print(f"pmi_server: rank {rank.rank} sent an unknown command: {request}", file=sys.stderr)
            self.status = self.status or 3
            rank.process.kill()
            return
        handler(rank, request)
        if self.fault in CLOSES and command in FAULTS[self.fault][0] and rank.rank == self.size - 1:
            rank.socket.shutdown(socket.SHUT_RDWR)

    def on_init(self, rank, request):
        rank.send("response_to_init", rc=0, pmi_version=request["pmi_version"], pmi_subversion=0)
        rank.framed = request["pmi_version"] == "2"

    def on_get_maxes(self, rank, request):
        rank.send("maxes", rc=0, kvsname_max=256, keylen_max=64, vallen_max=128)

    def on_get_my_kvsname(self, rank, request):
        rank.send("my_kvsname", rc=0, kvsname="kvs_job")

    def on_put(self, rank, request):
        self.values[request["key"]] = request["value"]
        rank.send("put_result", rc=0, msg="success")

    def on_get(self, rank, request):
        if request["key"] in self.values:
            rank.send("get_result", rc=0, msg="success", value=self.values[request["key"]])
        else:
            rank.send("get_result", rc=-1, msg="not_found", value="unknown")

    def meet(self, rank, command, **fields):
        self.waiting.append(rank)
        if len(self.waiting) == self.size:
            waiting, self.waiting = self.waiting, []
            for one in waiting:
                one.send(command, **fields)

    def on_barrier_in(self, rank, request):
        self.meet(rank, "barrier_out")

    def on_finalize(self, rank, request):
        rank.send("finalize-response" if rank.framed else "finalize_ack", rc=0)

    def on_abort(self, rank, request):
        self.status = self.status or int(request.get("exitcode", 1))
        for one in self.ranks:
            one.process.kill()

    def on_fullinit(self, rank, request):
        rank.send("fullinit-response", rc=0, pmi_version=2, pmi_subversion=0, rank=self.told_rank(rank.rank), size=self.size,
                  appnum=0)

    def on_job_getid(self, rank, request):
        rank.send("job-getid-response", jobid="kvs_job", rc=0)

    def on_info_getjobattr(self, rank, request):
        rank.send("info-getjobattr-response", found="TRUE", value=self.values[request["key"]], rc=0)

    def on_kvs_put(self, rank, request):
        self.values[request["key"]] = request["value"]
        rank.send("kvs-put-response", rc=0)

    def on_kvs_get(self, rank, request):
        if request["key"] in self.values:
            rank.send("kvs-get-response", found="TRUE", value=self.values[request["key"]], rc=0)
        else:
            rank.send("kvs-get-response", found="FALSE", rc=0)

    def on_kvs_fence(self, rank, request):
        self.meet(rank, "kvs-fence-response", rc=0)

    def ended(self, rank):
        """A rank has closed its connection. If it failed, the others are ended, as a process manager does."""
        code = rank.process.wait()
        if code and not self.status:
            self.status = code if code > 0 else 128 - code
            for other in self.ranks if not self.survive else ():
                other.process.kill()

    def run(self):
        with selectors.DefaultSelector() as selector:
            for rank in self.ranks:
                selector.register(rank.socket, selectors.EVENT_READ, rank)
            while selector.get_map():
                for key, _ in selector.select():
                    rank = key.data
                    try:
                        some = rank.socket.recv(65536)
                    except OSError:
                        some = b""
                    if not some:
                        selector.unregister(rank.socket)
                        self.ended(rank)
                    rank.bytes += some
                    for request in rank.requests():
                        self.handle(rank, request)
        return self.status


def main():
    arguments, fault, count, survive = sys.argv[1:], None, False, False
    while arguments and arguments[0].startswith("--"):
        if arguments[0] == "--count":
            count = True
        elif arguments[0] == "--survive":
            survive = True
        else:
            fault = arguments.pop(1)
        arguments.pop(0)
    server = Server(int(arguments[0]), int(arguments[1]), arguments[2:], fault, survive)
    status = server.run()
    if count:
        for command, n in sorted(server.counts.items()):
            print(f"{command} {n}")
    return status


if __name__ == "__main__":
    sys.exit(main())
