#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The double keeps the rules of verbs, with nodes of its own.
nodes=$(mktemp -d) || exit 1
trap 'rm -rf "$nodes"' EXIT
HR_VERBS_DOUBLE_DIR=$nodes "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ibverbs_double/rules"
