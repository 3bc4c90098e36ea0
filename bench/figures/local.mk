# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/figures.sh %D%/figures.py

# The figures of docs/, on the libibverbs double; FIGURES holds options of figures.sh.
.PHONY: figures
figures: all $(check_LTLIBRARIES)
	@top_builddir='$(abs_top_builddir)' PYTHON='$(PYTHON)' $(srcdir)/%D%/figures.sh $(FIGURES)
