# SPDX-License-Identifier: BSD-3-Clause
"""build.py FILE...: prints build.c, the hash of the files (wire.h: door_build)."""
import hashlib
import sys

digest = hashlib.sha256()
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        digest.update(file.read())
print('#include "cuda_remote/door/wire.h"\n')
print("const uint8_t door_build[DOOR_BUILD_BYTES] = {")
print("\t" + ", ".join("0x%02x" % byte for byte in digest.digest()[:16]))
print("};")
