# SPDX-License-Identifier: BSD-3-Clause
"""journal.py FILE PROGRAM ARGUMENT…: listens in the journal's place, writes what comes to FILE, runs PROGRAM. Passes
SIGTERM on and ends with the program."""
import signal
import socket
import subprocess
import sys
import threading

listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind("/run/systemd/journal/stdout")
listener.listen(16)


def receive():
    connection, _ = listener.accept()
    with open(sys.argv[1], "ab", buffering=0) as file:
        while data := connection.recv(4096):
            file.write(data)


threading.Thread(target=receive, daemon=True).start()
program = subprocess.Popen(sys.argv[2:])
signal.signal(signal.SIGTERM, lambda *_: program.terminate())
sys.exit(program.wait())
