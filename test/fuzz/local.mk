# SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets for whatever parses foreign bytes; configure CC=clang --enable-fuzzers, then
#	make fuzz-smoke FUZZ_SECONDS=60
EXTRA_DIST += %D%/smoke.sh %D%/seeds/fuzz-door/enter %D%/seeds/fuzz-server/list \
	%D%/seeds/fuzz-fatbin/default %D%/seeds/fuzz-fatbin/speed %D%/seeds/fuzz-fatbin/none \
	%D%/seeds/fuzz-ptx/kernel
if FUZZERS
fuzz_ldflags = -fsanitize=fuzzer
fuzz_programs = %D%/fuzz-card
noinst_PROGRAMS += $(fuzz_programs)

test_fuzz_fuzz_card_SOURCES = %D%/fuzz_card.c
test_fuzz_fuzz_card_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_card_LDADD = rdma_channel/libhrchannel.la

if HAVE_CUDA
fuzz_programs += %D%/fuzz-door %D%/fuzz-fatbin %D%/fuzz-ptx %D%/fuzz-server
test_fuzz_fuzz_door_SOURCES = %D%/fuzz_door.c
test_fuzz_fuzz_door_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_door_LDADD = cuda_remote/door/libhrdoor.la
test_fuzz_fuzz_fatbin_SOURCES = %D%/fuzz_fatbin.c
test_fuzz_fuzz_fatbin_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_fuzz_fuzz_fatbin_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_fatbin_LDADD = cuda_remote/softgpu/libsgdriver.la rdma_channel/base/libhrbase.la
test_fuzz_fuzz_ptx_SOURCES = %D%/fuzz_ptx.c
test_fuzz_fuzz_ptx_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_fuzz_fuzz_ptx_LDFLAGS = $(fuzz_ldflags)
# The driver's part is the memory map that the engine asks.
test_fuzz_fuzz_ptx_LDADD = cuda_remote/softgpu/libsgengine.la cuda_remote/softgpu/libsgdriver.la \
	cuda_remote/api/libcuapi.la rdma_channel/base/libhrbase.la
test_fuzz_fuzz_server_SOURCES = %D%/fuzz_server.c
test_fuzz_fuzz_server_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_server_LDADD = cuda_remote/door/libhrdoor.la
else
EXTRA_DIST += %D%/fuzz_door.c %D%/fuzz_fatbin.c %D%/fuzz_ptx.c %D%/fuzz_server.c
endif
else
EXTRA_DIST += %D%/fuzz_card.c %D%/fuzz_door.c %D%/fuzz_fatbin.c %D%/fuzz_ptx.c %D%/fuzz_server.c
endif

FUZZ_SECONDS = 60
fuzz-smoke: $(fuzz_programs)
	$(srcdir)/%D%/smoke.sh $(FUZZ_SECONDS) $(fuzz_programs)
.PHONY: fuzz-smoke
