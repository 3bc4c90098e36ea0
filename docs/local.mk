# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += %D%/man/headrace.7 %D%/man/headrace-perf.1
# Installed as they lie in the tree, so that the links between README, docs/, figures and examples hold there too.
dist_doc_DATA += CONTRIBUTING.md
docsdir = $(docdir)/docs
dist_docs_DATA = \
	%D%/ADMIN.md %D%/BENCHMARKS.md %D%/CHANNEL.md %D%/COVERAGE.md %D%/DECISIONS.md %D%/DESIGN.md \
	%D%/GLOSSARY.md %D%/KNOWN_ISSUES.md %D%/MPI.md %D%/ORDERING.md %D%/PROTOCOL.md %D%/PYTHON.md %D%/SAMPLES.md %D%/SECURITY.md \
	%D%/STATUS.md %D%/TESTING.md
decisionsdir = $(docsdir)/decisions
dist_decisions_DATA = \
	%D%/decisions/build-and-tests.md %D%/decisions/ch3.md %D%/decisions/channel.md %D%/decisions/mpi.md \
	%D%/decisions/remote-cuda.md %D%/decisions/runtime.md %D%/decisions/shared-memory.md \
	%D%/decisions/softgpu-driver.md %D%/decisions/softgpu-engine.md %D%/decisions/verbs.md
# Written by make figures; BENCHMARKS.md shows them.
figuresdir = $(docsdir)/figures
dist_figures_DATA = \
	%D%/figures/figure04.png %D%/figures/figure05.png %D%/figures/figure06.png %D%/figures/figure07.png \
	%D%/figures/figure08.png %D%/figures/figure09.png %D%/figures/figure10.png %D%/figures/figure11.png \
	%D%/figures/figure13.png %D%/figures/figure14.png %D%/figures/figure15.png \
	%D%/figures/figure16.png %D%/figures/figure17.png \
	%D%/figures/peer_bandwidth.png %D%/figures/peer_buffers_a.png %D%/figures/peer_buffers_b.png \
	%D%/figures/peer_latency.png \
	%D%/figures/sweep_depth.png %D%/figures/sweep_qps.png
EXTRA_DIST += %D%/figures
EXTRA_DIST += adi/README.md bench/README.md ch3/README.md ib/README.md rdma_channel/README.md rdma_channel/shm/README.md \
	test/README.md
