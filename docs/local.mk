# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += %D%/man/headrace-perf.1
dist_doc_DATA += \
	%D%/BENCHMARKS.md %D%/CHANNEL.md %D%/DECISIONS.md %D%/DESIGN.md %D%/PROTOCOL.md %D%/STATUS.md
# Written by make figures; BENCHMARKS.md shows them.
EXTRA_DIST += %D%/figures
