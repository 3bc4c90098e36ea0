# SPDX-License-Identifier: BSD-3-Clause
"""scan.py PID HEX...: looks for the bytes in the memory of a process. Prints those found; status 1 if any."""
import sys

found = 0
secrets = [bytes.fromhex(text) for text in sys.argv[2:]]
total = 0
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
    for line in maps:
        where, rights = line.split()[:2]
        start, end = (int(text, 16) for text in where.split("-"))
        if rights[0] != "r" or "[v" in line:
            continue
        try:
            memory.seek(start)
            data = memory.read(end - start)
        except OSError:
            continue
        total += len(data)
        for secret in secrets:
            if secret in data:
                print(f"{secret.hex()} is at {start + data.index(secret):#x}: {line.strip()}")
                found = 1
if not total:
    sys.exit("nothing could be read")
sys.exit(found)
