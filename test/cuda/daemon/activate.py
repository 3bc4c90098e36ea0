# SPDX-License-Identifier: BSD-3-Clause
"""activate.py SOCKET NOTIFY FILE PROGRAM ARGUMENT…: starts PROGRAM as systemd does: with a listening Unix socket as
descriptor 3 and a socket for notices, which go to FILE. Passes SIGTERM on and ends with the program."""
import os
import signal
import socket
import subprocess
import sys
import threading

path, notify, notices = sys.argv[1:4]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(path)
listener.listen(16)
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(notify)


def receive():
    with open(notices, "ab", buffering=0) as file:
        while notice := receiver.recv(4096):
            file.write(notice + b"\n")


receiving = threading.Thread(target=receive)
receiving.start()
if listener.fileno() != 3:
    os.dup2(listener.fileno(), 3)
command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"] + sys.argv[4:]
environment = dict(os.environ, LISTEN_FDS="1", NOTIFY_SOCKET=notify)
program = subprocess.Popen(command, env=environment, pass_fds=[3])
signal.signal(signal.SIGTERM, lambda *_: program.terminate())
status = program.wait()
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
    end.sendto(b"", notify)
receiving.join()
sys.exit(status)
