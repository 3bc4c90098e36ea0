#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Markdown files: columns, links, and paths in backticks. Needs a git checkout; .ci/run may call it without a build.
set -euo pipefail
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
git -C "$top" rev-parse --is-inside-work-tree >/dev/null 2>&1 ||
	{ echo "$top is not a git checkout, so the list of its files is not known"; exit 77; }
exec "${PYTHON:-python3}" -B "$top/test/tools/docs_style.py" "$top"
