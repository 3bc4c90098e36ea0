#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# CH3 over verbs, on the libibverbs double, in both modes of rendezvous.
for mode in read write; do
	HEADRACE_RENDEZVOUS=$mode "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ch3/processes" verbs || exit
done
