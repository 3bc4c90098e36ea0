#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A hundred idle connections, then a thousand at work in one process, over shared memory.
set -e
"$top_builddir/test/channel/many" --transport shm --conns 100
exec "$top_builddir/test/channel/many" --transport shm --conns 1000
