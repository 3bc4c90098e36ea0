#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# headrace(7) has the environment variables that the code reads.
set -euo pipefail
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
exec "${PYTHON:-python3}" -B "$top/test/tools/environment.py" "$top"
