# SPDX-License-Identifier: BSD-3-Clause
"""metrics.py PLACE COMMAND: a visitor of headraced's metrics. PLACE: PORT of loopback, or the path of a Unix socket.

  get             prints the page, after a check of its format: every sample has HELP and TYPE, no sample occurs twice,
                  names of counters and of nothing else end in _total
  value SAMPLE    prints the value of one sample, such as 'headrace_refused_total{reason="denied"}'
  head            HEAD /metrics: the head of GET, without a body
  hostile         requests that are wrong, too long, incomplete or random; each gets its status or an end
  crowd           more silent visitors than there are places; a visitor that asks gets its answer nevertheless
  slow            a visitor that sends one byte a time or never reads: it is dropped
"""
import os
import random
import re
import socket
import sys

LIMIT = 60  # s, which only a hang exceeds


def connect():
    place = sys.argv[1]
    if place.isdigit():
        return socket.create_connection(("127.0.0.1", int(place)), LIMIT)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(LIMIT)
    connection.connect(place)
    return connection


def send(connection, data):
    """The server may close the connection first."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def read_all(connection):
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def visit(request):
    with connect() as connection:
        send(connection, request)
        return read_all(connection)


def get():
    head, _, body = visit(b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n").partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:])
    if lines[0] != "HTTP/1.1 200 OK" or int(fields["Content-Length"]) != len(body):
        sys.exit(f"the head is wrong: {lines}, {len(body)} bytes of body")
    if fields["Content-Type"] != "text/plain; version=0.0.4; charset=utf-8":
        sys.exit(f"the type is wrong: {fields}")
    return body.decode()


def samples(page):
    kinds, helped, found = {}, set(), {}
    for line in page.removesuffix("\n").split("\n"):
        if match := re.fullmatch(r"# HELP ([a-z_]+) \S.*", line):
            helped.add(match.group(1))
        elif match := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge)", line):
            kinds[match.group(1)] = match.group(2)
        elif match := re.fullmatch(r'(([a-z_]+)(?:\{[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*\})?) (\d+(?:\.\d+)?)', line):
            sample, name, number = match.groups()
            if name not in kinds or name not in helped or sample in found:
                sys.exit(f"without HELP or TYPE, or twice: {line}")
            found[sample] = number
        else:
            sys.exit(f"not a line of the format: {line!r}")
    for name, kind in kinds.items():
        if not name.startswith("headrace_") or name.endswith("_total") != (kind == "counter"):
            sys.exit(f"a wrong name for a {kind}: {name}")
    return found


def expect(request, *starts):
    answer = visit(request)
    if not any(answer.startswith(start) if start else not answer for start in starts):
        sys.exit(f"{request[:80]!r}: the answer is {answer[:200]!r}, not {starts}")


def hostile():
    ok, bad, none = b"HTTP/1.1 200 ", b"HTTP/1.1 400 ", b""
    expect(b"GET /metrics?name[]=x HTTP/1.0\r\n\r\n", ok)
    expect(b"GET /metrics HTTP/1.1\n\n", ok)
    expect(b"GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", ok)
    expect(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 ")
    expect(b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 ")
    expect(b"GET /metric HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 ")
    for method in b"POST", b"PUT", b"DELETE", b"get", b"GETS", b"X" * 1000:
        expect(method + b" /metrics HTTP/1.1\r\nContent-Length: 9999999999999\r\n\r\n", b"HTTP/1.1 405 ")
    for line in b"", b"GET", b"GET ", b"GET /metrics", b"GET /metrics HTTP/2.0", b"GET  HTTP/1.1", b"GET /metrics HTTP/1.", \
            b" /metrics HTTP/1.1", b"GET /metrics HTTP/1.1 more":
        expect(line + b"\r\n\r\n", bad)
    expect(b"GET /metrics HTTP/1.1\0\r\n\r\n", bad)
    expect(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", bad)  # TLS
    for size in 4096, 100000, 3000000:
        expect(b"GET /" + b"a" * size, b"HTTP/1.1 431 ", none)
        expect(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * size + b"\r\n\r\n", b"HTTP/1.1 431 ", none)
    with connect() as connection:  # the end of the stream before the end of the request
        send(connection, b"GET /metrics HTTP/1.1\r\n")
        connection.shutdown(socket.SHUT_WR)
        if read_all(connection):
            sys.exit("an incomplete request has an answer")
    dice = random.Random(1)
    for _ in range(200):
        text = dice.randbytes(dice.randrange(1, 600))
        expect(text + b"\r\n\r\n", bad, b"HTTP/1.1 405 ", b"HTTP/1.1 404 ", none)
        with connect() as connection:  # gone without a look at the answer
            send(connection, b"GET /metrics HTTP/1.1\r\n\r\n")
    for i in range(len(request := b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")):
        with connect() as connection:
            send(connection, request[:i])


def crowd():
    silent = [connect() for _ in range(40)]
    for connection in silent[:20]:
        send(connection, b"GET /metrics HTTP/1.1\r\nHost: ")
    for _ in range(3):
        get()
    # The oldest have lost their places to the visitors that came later.
    if read_all(silent[0]):
        sys.exit("a silent visitor got an answer")
    for connection in silent:
        connection.close()


def slow():
    """The visit has a time limit, whatever the visitor does."""
    reader, writer, silent = connect(), connect(), connect()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    send(reader, b"GET /metrics HTTP/1.1\r\n\r\n")
    writer.settimeout(0.1)
    dropped = False
    for _ in range(10 * LIMIT):
        try:
            writer.sendall(b"a")
            dropped = not writer.recv(1)
        except TimeoutError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            dropped = True
        if dropped:
            break
    if not dropped:
        sys.exit("a visitor that sends a byte now and then stays")
    if read_all(silent):
        sys.exit("a silent visitor got an answer")
    # Its buffers may hold the answer; what counts is that the server has closed the connection.
    while True:
        try:
            reader.sendall(b"a")
        except (BrokenPipeError, ConnectionResetError):
            break


command = sys.argv[2]
if command == "get":
    text = get()
    samples(text)
    sys.stdout.write(text)
elif command == "value":
    print(samples(get()).get(sys.argv[3], "none"))
elif command == "head":
    text = visit(b"HEAD /metrics HTTP/1.1\r\n\r\n")
    sys.exit(not (text.startswith(b"HTTP/1.1 200 OK\r\n") and text.endswith(b"\r\n\r\n") and b"# HELP" not in text))
else:
    {"hostile": hostile, "crowd": crowd, "slow": slow}[command]()
    samples(get())
    os._exit(0)
