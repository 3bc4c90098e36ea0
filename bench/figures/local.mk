# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/figures.sh %D%/figures.py %D%/peer.sh %D%/peer.py

# The figures of docs/, on the libibverbs double; FIGURES holds options of figures.sh.
.PHONY: figures
figures: all $(check_LTLIBRARIES)
	@top_builddir='$(abs_top_builddir)' PYTHON='$(PYTHON)' $(srcdir)/%D%/figures.sh $(FIGURES)

# Those of copies between two servers.
.PHONY: peer-figures
peer-figures: all $(check_LTLIBRARIES)
	@top_builddir='$(abs_top_builddir)' PYTHON='$(PYTHON)' $(srcdir)/%D%/peer.sh $(FIGURES)
