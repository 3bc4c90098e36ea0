# SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets for whatever parses foreign bytes; configure CC=clang --enable-fuzzers, then
#	make fuzz-smoke FUZZ_SECONDS=60 FUZZ_JOBS=2
EXTRA_DIST += %D%/smoke.sh %D%/seeds/fuzz-client/whole %D%/seeds/fuzz-client/short-copy %D%/seeds/fuzz-client/load-refused \
	%D%/seeds/fuzz-door/enter \
	%D%/seeds/fuzz-door-key/new %D%/seeds/fuzz-door-key/status %D%/seeds/fuzz-door-key/unproved %D%/seeds/fuzz-server/list \
	%D%/seeds/fuzz-door-key/munge %D%/seeds/fuzz-peer/hello %D%/seeds/fuzz-peer/stranger %D%/seeds/fuzz-peer/frames \
	%D%/seeds/fuzz-peer/direct %D%/seeds/fuzz-worker/staged %D%/seeds/fuzz-worker/chunks %D%/seeds/fuzz-worker/window \
	%D%/seeds/fuzz-worker-data/arrays %D%/seeds/fuzz-worker/graph %D%/seeds/fuzz-worker/ipc %D%/seeds/fuzz-worker-data/later \
	%D%/seeds/fuzz-worker/graph-rows %D%/seeds/fuzz-worker/tensor \
	%D%/seeds/fuzz-worker/managed %D%/seeds/fuzz-worker/placed %D%/seeds/fuzz-worker/pools \
	%D%/seeds/fuzz-worker/virtual %D%/seeds/fuzz-worker-data/placed \
	%D%/seeds/fuzz-elf-file/runtime \
	%D%/seeds/fuzz-fatbin/default %D%/seeds/fuzz-fatbin/speed %D%/seeds/fuzz-fatbin/none \
	%D%/seeds/fuzz-link/units %D%/seeds/fuzz-link/library \
	%D%/seeds/fuzz-object/object %D%/seeds/fuzz-object/archive %D%/seeds/fuzz-object/image \
	%D%/seeds/fuzz-ptx/kernel %D%/seeds/fuzz-ptx/directives %D%/seeds/fuzz-ptx/lists %D%/seeds/fuzz-ptx/families \
	%D%/seeds/fuzz-ptx/tensor_maps \
	%D%/seeds/fuzz-wireup/shm %D%/seeds/fuzz-wireup/tcp %D%/seeds/fuzz-wireup/tcp-over-unix \
	%D%/seeds/fuzz-secret/honest %D%/seeds/fuzz-secret/changed %D%/seeds/fuzz-secret/repeated \
	%D%/seeds/fuzz-tcp/long %D%/seeds/fuzz-tcp/small %D%/seeds/fuzz-tcp/wrong \
	%D%/seeds/fuzz-shm/tail %D%/seeds/fuzz-shm/traffic %D%/seeds/fuzz-ib-ring/announced \
	%D%/seeds/fuzz-ib-ring/traffic %D%/seeds/fuzz-ib-pull/traffic \
	%D%/seeds/fuzz-ib-adapters/pairs %D%/seeds/fuzz-ib-adapters/stranger \
	%D%/seeds/fuzz-ch3/clear %D%/seeds/fuzz-ch3/eager \
	%D%/seeds/fuzz-ch3/rendezvous %D%/seeds/fuzz-ch3/short %D%/seeds/fuzz-launch/version-1 %D%/seeds/fuzz-launch/version-2
if FUZZERS
fuzz_ldflags = -fsanitize=fuzzer
fuzz_programs = %D%/fuzz-card %D%/fuzz-wireup %D%/fuzz-tcp %D%/fuzz-secret %D%/fuzz-shm %D%/fuzz-ib-ring %D%/fuzz-ib-pull \
	%D%/fuzz-ch3 %D%/fuzz-launch
noinst_PROGRAMS += $(fuzz_programs)
fuzz_common = %D%/input.h %D%/quiet_log.c

test_fuzz_fuzz_card_SOURCES = %D%/fuzz_card.c %D%/quiet_log.c
test_fuzz_fuzz_card_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_card_LDADD = rdma_channel/libhrchannel.la
test_fuzz_fuzz_wireup_SOURCES = %D%/fuzz_wireup.c $(fuzz_common)
test_fuzz_fuzz_wireup_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_wireup_LDADD = rdma_channel/libhrchannel.la
test_fuzz_fuzz_tcp_SOURCES = %D%/fuzz_tcp.c $(fuzz_common)
test_fuzz_fuzz_tcp_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_tcp_LDADD = rdma_channel/libhrchannel.la
test_fuzz_fuzz_secret_SOURCES = %D%/fuzz_secret.c $(fuzz_common)
test_fuzz_fuzz_secret_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_secret_LDADD = rdma_channel/libhrchannel.la
test_fuzz_fuzz_shm_SOURCES = %D%/fuzz_shm.c $(fuzz_common)
test_fuzz_fuzz_shm_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=mmap,--wrap=munmap \
	-Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
test_fuzz_fuzz_shm_LDADD = rdma_channel/libhrchannel.la
test_fuzz_fuzz_ib_ring_SOURCES = %D%/fuzz_ib_ring.c %D%/input.h ib/ib_ring.c ib/ib_ring.h
test_fuzz_fuzz_ib_ring_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_ib_ring_LDADD =
test_fuzz_fuzz_ib_pull_SOURCES = %D%/fuzz_ib_pull.c %D%/input.h ib/ib_pull.c ib/ib_pull.h ib/ib_offer.h
test_fuzz_fuzz_ib_pull_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_ib_pull_LDADD =
if HAVE_IBVERBS
fuzz_programs += %D%/fuzz-ib-adapters
test_fuzz_fuzz_ib_adapters_SOURCES = %D%/fuzz_ib_adapters.c $(fuzz_common)
test_fuzz_fuzz_ib_adapters_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_fuzz_fuzz_ib_adapters_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_ib_adapters_LDADD = rdma_channel/libhrchannel.la
else
EXTRA_DIST += %D%/fuzz_ib_adapters.c
endif
test_fuzz_fuzz_ch3_SOURCES = %D%/fuzz_ch3.c $(fuzz_common) test/ch3/memory_channel.c test/ch3/memory_channel.h
test_fuzz_fuzz_ch3_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_ch3_LDADD = ch3/libhrch3core.la rdma_channel/base/libhrbase.la
test_fuzz_fuzz_launch_SOURCES = %D%/fuzz_launch.c $(fuzz_common) adi/core/launch_pmi1.c adi/core/launch_pmi2.c \
	adi/core/launch_wire.c adi/core/launch.h
test_fuzz_fuzz_launch_CPPFLAGS = -I$(builddir)/adi $(AM_CPPFLAGS)
test_fuzz_fuzz_launch_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_launch_LDADD =
$(test_fuzz_fuzz_launch_OBJECTS): | $(HR_MPI_BINDINGS_H)

if HAVE_CUDA
fuzz_programs += %D%/fuzz-door %D%/fuzz-door-key %D%/fuzz-elf-file %D%/fuzz-fatbin %D%/fuzz-ptx %D%/fuzz-server
fuzz_programs += %D%/fuzz-link %D%/fuzz-object %D%/fuzz-worker %D%/fuzz-worker-data %D%/fuzz-client %D%/fuzz-peer
test_fuzz_fuzz_door_SOURCES = %D%/fuzz_door.c
test_fuzz_fuzz_door_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_door_LDADD = cuda_remote/door/libhrdoor.la
test_fuzz_fuzz_door_key_SOURCES = %D%/fuzz_door_key.c
test_fuzz_fuzz_door_key_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=door_munge_decode
test_fuzz_fuzz_door_key_LDADD = cuda_remote/door/libhrdoor.la
test_fuzz_fuzz_elf_file_SOURCES = %D%/fuzz_elf_file.c
test_fuzz_fuzz_elf_file_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_elf_file_LDADD = cuda_remote/relink/libhrelf.la
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
test_fuzz_fuzz_link_SOURCES = %D%/fuzz_link.c
test_fuzz_fuzz_link_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_fuzz_fuzz_link_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_link_LDADD = $(test_fuzz_fuzz_ptx_LDADD)
test_fuzz_fuzz_object_SOURCES = %D%/fuzz_object.c
test_fuzz_fuzz_object_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_fuzz_fuzz_object_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_object_LDADD = $(test_fuzz_fuzz_fatbin_LDADD)
test_fuzz_fuzz_worker_SOURCES = %D%/fuzz_worker.c %D%/worker_calls.c %D%/worker_calls.h %D%/input.h
nodist_test_fuzz_fuzz_worker_SOURCES = cuda_remote/api/fuzz.h
test_fuzz_fuzz_worker_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS) \
	-DFUZZ_DRIVER='"$(abs_top_builddir)/test/fuzz/.libs/libcuda.so"'
# The worker loads this software GPU, which takes the sanitizers' functions from the target: so it may lack definitions.
noinst_LTLIBRARIES += %D%/libcuda.la
test_fuzz_libcuda_la_SOURCES =
test_fuzz_libcuda_la_LIBADD = $(cuda_remote_softgpu_libcuda_la_LIBADD)
test_fuzz_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere -Wl,-z,nodelete \
	-Wl,-Bsymbolic -Wl,--version-script=$(srcdir)/cuda_remote/softgpu/libcuda.map
test_fuzz_fuzz_worker_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=server_output_ship,--wrap=server_latch_set -Wl,--export-dynamic
EXTRA_test_fuzz_fuzz_worker_DEPENDENCIES = %D%/libcuda.la
test_fuzz_fuzz_worker_LDADD = cuda_remote/server/libworker.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
test_fuzz_fuzz_worker_data_SOURCES = $(test_fuzz_fuzz_worker_SOURCES)
nodist_test_fuzz_fuzz_worker_data_SOURCES = $(nodist_test_fuzz_fuzz_worker_SOURCES)
test_fuzz_fuzz_worker_data_CPPFLAGS = $(test_fuzz_fuzz_worker_CPPFLAGS) -DFUZZ_DATA=1
test_fuzz_fuzz_worker_data_LDFLAGS = $(test_fuzz_fuzz_worker_LDFLAGS)
EXTRA_test_fuzz_fuzz_worker_data_DEPENDENCIES = %D%/libcuda.la
test_fuzz_fuzz_worker_data_LDADD = $(test_fuzz_fuzz_worker_LDADD)
test_fuzz_fuzz_peer_SOURCES = %D%/fuzz_peer.c $(fuzz_common)
nodist_test_fuzz_fuzz_peer_SOURCES = cuda_remote/api/calls.h
test_fuzz_fuzz_peer_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_fuzz_fuzz_peer_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=hr_channel_get -Wl,--wrap=peer_way_open,--wrap=peer_way_copy \
	-Wl,--wrap=peer_way_wait,--wrap=peer_way_finish
test_fuzz_fuzz_peer_LDADD = cuda_remote/server/libworker.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
# The client's own sources but session.c, which the target includes.
test_fuzz_fuzz_client_SOURCES = %D%/fuzz_client.c %D%/input.h $(cuda_client_but_session)
nodist_test_fuzz_fuzz_client_SOURCES = $(nodist_cuda_remote_client_libcuda_la_SOURCES)
test_fuzz_fuzz_client_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_fuzz_fuzz_client_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=rc_door_connect
test_fuzz_fuzz_client_LDADD = cuda_remote/client/libgraphtwice.la cuda_remote/api/libcuapi.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
test_fuzz_fuzz_server_SOURCES = %D%/fuzz_server.c
test_fuzz_fuzz_server_LDFLAGS = $(fuzz_ldflags)
test_fuzz_fuzz_server_LDADD = cuda_remote/door/libhrdoor.la
else
EXTRA_DIST += %D%/fuzz_door.c %D%/fuzz_door_key.c %D%/fuzz_elf_file.c %D%/fuzz_fatbin.c %D%/fuzz_ptx.c %D%/fuzz_server.c
EXTRA_DIST += %D%/fuzz_link.c %D%/fuzz_object.c %D%/fuzz_peer.c %D%/fuzz_client.c
EXTRA_DIST += %D%/fuzz_worker.c %D%/worker_calls.c %D%/worker_calls.h
endif
else
EXTRA_DIST += %D%/fuzz_card.c %D%/fuzz_ch3.c %D%/fuzz_client.c %D%/fuzz_worker.c %D%/worker_calls.c %D%/worker_calls.h %D%/fuzz_door.c %D%/fuzz_door_key.c %D%/fuzz_elf_file.c %D%/fuzz_fatbin.c %D%/fuzz_ib_adapters.c %D%/fuzz_ib_pull.c \
	%D%/fuzz_ib_ring.c %D%/fuzz_launch.c %D%/fuzz_link.c %D%/fuzz_object.c %D%/fuzz_peer.c %D%/fuzz_ptx.c %D%/fuzz_server.c %D%/fuzz_shm.c %D%/fuzz_tcp.c %D%/fuzz_wireup.c %D%/input.h %D%/quiet_log.c
endif

FUZZ_SECONDS = 60
FUZZ_JOBS = 2
# Generated headers come before what includes them.
fuzz-smoke:
	$(MAKE) $(AM_MAKEFLAGS) $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(fuzz_programs)
	$(srcdir)/%D%/smoke.sh $(FUZZ_SECONDS) $(FUZZ_JOBS) $(fuzz_programs)
.PHONY: fuzz-smoke
