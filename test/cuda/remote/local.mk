# SPDX-License-Identifier: BSD-3-Clause
# Programs of the driver API over the whole remote path: client library, daemon, worker, driver with an engine double.
HR_REMOTE_CHECKS = test/cuda/remote/array_copies test/cuda/remote/capture test/cuda/remote/copies test/cuda/remote/delivery \
	test/cuda/remote/errors test/cuda/remote/graph_boxes test/cuda/remote/graph_memory test/cuda/remote/graph_threads test/cuda/remote/graphs test/cuda/remote/held test/cuda/remote/hostfn test/cuda/remote/linker test/cuda/remote/order \
	test/cuda/remote/ipc \
	test/cuda/remote/other_build test/cuda/remote/headraced-other \
	test/cuda/remote/complete test/cuda/remote/delays test/cuda/remote/headraced-faults test/cuda/remote/peer test/cuda/remote/peer_graphs test/cuda/remote/peer_links test/cuda/remote/pinned test/cuda/remote/placed test/cuda/remote/pools test/cuda/remote/softgpu_arrays \
	test/cuda/remote/eager test/cuda/remote/waits test/cuda/remote/gathered test/cuda/remote/refusals \
	test/cuda/remote/handles test/cuda/remote/replies test/cuda/remote/mapped test/cuda/remote/killed \
	test/cuda/remote/managed test/cuda/remote/managed_far test/cuda/remote/promoted \
	test/cuda/remote/threads \
	test/cuda/remote/quota test/cuda/remote/rogue test/cuda/remote/servers test/cuda/remote/small_calls \
	test/cuda/remote/softgpu_green_contexts test/cuda/remote/softgpu_old_calls test/cuda/remote/softgpu_references test/cuda/remote/softgpu_tensor_maps test/cuda/remote/stream_memory test/cuda/remote/usage test/cuda/remote/victim test/cuda/remote/virtual
HR_REMOTE_RUNS = test/cuda/remote/arrays.sh test/cuda/remote/copies.sh test/cuda/remote/death.sh test/cuda/remote/delivery.sh \
	test/cuda/remote/encrypted.sh test/cuda/remote/errors.sh test/cuda/remote/graphs.sh test/cuda/remote/green.sh test/cuda/remote/held.sh test/cuda/remote/hostfn.sh \
	test/cuda/remote/complete.sh test/cuda/remote/delays.sh test/cuda/remote/linker.sh test/cuda/remote/order.sh test/cuda/remote/other_build.sh test/cuda/remote/peer.sh test/cuda/remote/peer_links.sh test/cuda/remote/peer_perf.sh test/cuda/remote/pinned.sh test/cuda/remote/placed.sh \
	test/cuda/remote/ipc.sh \
	test/cuda/remote/pools.sh \
	test/cuda/remote/quota.sh test/cuda/remote/references.sh test/cuda/remote/rogue.sh test/cuda/remote/servers.sh test/cuda/remote/small_calls.sh test/cuda/remote/stream_memory.sh test/cuda/remote/tensor_maps.sh test/cuda/remote/threads.sh \
	test/cuda/remote/usage.sh test/cuda/remote/virtual.sh \
	test/cuda/remote/eager.sh test/cuda/remote/waits.sh test/cuda/remote/gathered.sh test/cuda/remote/refusals.sh \
	test/cuda/remote/handles.sh test/cuda/remote/replies.sh test/cuda/remote/mapped.sh test/cuda/remote/killed.sh \
	test/cuda/remote/managed.sh test/cuda/remote/managed_far.sh test/cuda/remote/promoted.sh
check_PROGRAMS += $(HR_REMOTE_CHECKS)
dist_check_SCRIPTS += $(HR_REMOTE_RUNS)
TESTS += $(HR_REMOTE_RUNS)
EXTRA_DIST += test/cuda/remote/remote.sh

REMOTE_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_remote_capture_SOURCES = test/cuda/remote/capture.c test/cuda/softgpu/driver.h
test_cuda_remote_capture_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_capture_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_graph_memory_SOURCES = test/cuda/remote/graph_memory.c test/cuda/softgpu/driver.h
test_cuda_remote_graph_memory_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_graph_memory_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_graph_boxes_SOURCES = test/cuda/remote/graph_boxes.c test/cuda/softgpu/driver.h
test_cuda_remote_graph_boxes_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_graph_boxes_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_graph_threads_SOURCES = test/cuda/remote/graph_threads.c test/cuda/softgpu/driver.h
test_cuda_remote_graph_threads_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_graph_threads_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_graphs_SOURCES = test/cuda/remote/graphs.c test/cuda/softgpu/driver.h
test_cuda_remote_graphs_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_graphs_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_copies_SOURCES = test/cuda/remote/copies.c test/cuda/softgpu/driver.h
test_cuda_remote_copies_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_copies_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_delivery_SOURCES = test/cuda/remote/delivery.c test/cuda/softgpu/driver.h
test_cuda_remote_delivery_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_delivery_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_eager_SOURCES = test/cuda/remote/eager.c test/cuda/softgpu/driver.h
test_cuda_remote_eager_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_eager_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_waits_SOURCES = test/cuda/remote/waits.c test/cuda/softgpu/driver.h
test_cuda_remote_waits_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_waits_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_gathered_SOURCES = test/cuda/remote/gathered.c test/cuda/softgpu/driver.h
test_cuda_remote_gathered_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_gathered_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_array_copies_SOURCES = test/cuda/remote/array_copies.c test/cuda/softgpu/driver.h
test_cuda_remote_array_copies_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_array_copies_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_softgpu_arrays_SOURCES = test/cuda/softgpu/arrays.c test/cuda/softgpu/driver.h
test_cuda_remote_softgpu_arrays_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_softgpu_arrays_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_errors_SOURCES = test/cuda/remote/errors.c
test_cuda_remote_errors_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_errors_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_held_SOURCES = test/cuda/remote/held.c test/cuda/softgpu/driver.h
test_cuda_remote_held_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_held_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_hostfn_SOURCES = test/cuda/remote/hostfn.c
test_cuda_remote_hostfn_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_hostfn_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_ipc_SOURCES = test/cuda/remote/ipc.c test/cuda/softgpu/driver.h
test_cuda_remote_ipc_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_ipc_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_linker_SOURCES = test/cuda/remote/linker.c test/cuda/softgpu/driver.h
test_cuda_remote_linker_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_linker_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_managed_SOURCES = test/cuda/remote/managed.c test/cuda/softgpu/driver.h
test_cuda_remote_managed_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_managed_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_promoted_SOURCES = test/cuda/remote/promoted.c test/cuda/softgpu/driver.h
test_cuda_remote_promoted_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_promoted_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_managed_far_SOURCES = test/cuda/remote/managed_far.c test/cuda/softgpu/driver.h
test_cuda_remote_managed_far_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_managed_far_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_mapped_SOURCES = test/cuda/remote/mapped.c test/cuda/softgpu/driver.h test/cuda/softgpu/host_to_host.h
test_cuda_remote_mapped_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_mapped_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_order_SOURCES = test/cuda/remote/order.c test/cuda/softgpu/driver.h
test_cuda_remote_order_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_order_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_other_build_SOURCES = test/cuda/remote/other_build.c test/cuda/softgpu/driver.h
test_cuda_remote_other_build_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_other_build_LDADD = cuda_remote/client/libcuda.la
# A server of another build. Its table has the files of the table in reverse order, so that all numbers differ; it lacks one
# call, and has another form of a second. The sources that depend on the numbers are compiled with this table.
OTHER = test/cuda/remote/other
OTHER_GENERATED = $(OTHER)/cuda_remote/api/calls.h $(OTHER)/names.c $(OTHER)/calls.c $(OTHER)/wire.txt $(OTHER)/build.c
CLEANFILES += $(OTHER_GENERATED) $(OTHER)/table
test_cuda_remote_headraced_other_SOURCES = cuda_remote/server/latch.c cuda_remote/server/peer.c cuda_remote/server/peer/copies.c cuda_remote/server/thread.c
nodist_test_cuda_remote_headraced_other_SOURCES = $(OTHER)/calls.c $(OTHER)/names.c $(OTHER)/build.c
test_cuda_remote_headraced_other_CPPFLAGS = -iquote $(OTHER) $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_remote_headraced_other_LDADD = $(cuda_remote_server_headraced_LDADD)
$(test_cuda_remote_headraced_other_OBJECTS): $(OTHER)/cuda_remote/api/calls.h cuda_remote/api/driver.h
$(OTHER)/table: $(HR_CALL_TABLE) Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && for file in $(HR_CALL_TABLE); do echo "$(srcdir)/$$file"; done | sort -r | xargs cat | \
		sed '/^wait  *cuCtxGetCacheConfig/d; s/^async cuCtxSetCacheConfig/wait cuCtxSetCacheConfig/' > $@.new && mv $@.new $@
HR_OTHER_PY = $(AM_V_GEN)$(MKDIR_P) $(@D) && other() { here=`pwd` && (cd $(srcdir) && $(PYTHON) -B cuda_remote/api/calls.py \
	"$$1" "$(CC) $(CUDA_CPPFLAGS)" "$$here/$(OTHER)/table") > "$$2.new" && mv "$$2.new" "$$2"; } && other
$(OTHER)/cuda_remote/api/calls.h: $(OTHER)/table $(HR_CALL_INPUTS)
	$(HR_OTHER_PY) calls.h $@
$(OTHER)/names.c: $(OTHER)/table $(HR_CALL_INPUTS)
	$(HR_OTHER_PY) names.c $@
$(OTHER)/calls.c: $(OTHER)/table $(HR_CALL_INPUTS)
	$(HR_OTHER_PY) server.c $@
$(OTHER)/wire.txt: $(OTHER)/table $(HR_CALL_INPUTS)
	$(HR_OTHER_PY) wire.txt $@
$(OTHER)/build.c: cuda_remote/door/build.py $(OTHER)/wire.txt $(DOOR_BUILD_INPUTS)
	$(AM_V_GEN)here=`pwd` && cd $(srcdir) && $(PYTHON) -B cuda_remote/door/build.py "$$here/$(OTHER)/wire.txt" \
		$(DOOR_BUILD_INPUTS) > "$$here/$@.new" && cd "$$here" && mv $@.new $@
test_cuda_remote_peer_SOURCES = test/cuda/remote/peer.c test/cuda/remote/peer.h test/cuda/remote/peer_arrays.c \
	test/cuda/remote/peer_death.c test/cuda/remote/peer_default_streams.c test/cuda/remote/peer_drivers.c \
	test/cuda/remote/peer_host_memory.c test/cuda/remote/peer_order.c test/cuda/remote/peer_places.c \
	test/cuda/remote/peer_shapes.c test/cuda/softgpu/driver.h
test_cuda_remote_peer_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_peer_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_killed_SOURCES = test/cuda/remote/killed.c test/cuda/softgpu/driver.h
test_cuda_remote_killed_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_killed_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_delays_SOURCES = test/cuda/remote/delays.c test/cuda/softgpu/driver.h
test_cuda_remote_delays_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_delays_LDADD = cuda_remote/client/libcuda.la
# The daemon, with the fault channel in the place of rdma_channel/transports.c.
test_cuda_remote_headraced_faults_SOURCES = test/faults/fault_transport.c test/faults/fault_transport.h
test_cuda_remote_headraced_faults_LDADD = $(cuda_remote_server_headraced_LDADD)
test_cuda_remote_peer_graphs_SOURCES = test/cuda/remote/peer_graphs.c test/cuda/softgpu/driver.h
test_cuda_remote_peer_graphs_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_peer_graphs_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_peer_links_SOURCES = test/cuda/remote/peer_links.c test/cuda/softgpu/driver.h
test_cuda_remote_peer_links_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_peer_links_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_complete_SOURCES = test/cuda/remote/complete.c test/cuda/softgpu/driver.h
test_cuda_remote_complete_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_complete_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_replies_SOURCES = test/cuda/remote/replies.c test/cuda/softgpu/driver.h
test_cuda_remote_replies_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_replies_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_handles_SOURCES = test/cuda/remote/handles.c test/cuda/softgpu/driver.h
test_cuda_remote_handles_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_handles_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_pinned_SOURCES = test/cuda/remote/pinned.c test/cuda/softgpu/driver.h
test_cuda_remote_pinned_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_pinned_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_quota_SOURCES = test/cuda/remote/quota.c test/cuda/softgpu/driver.h
test_cuda_remote_quota_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_quota_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_placed_SOURCES = test/cuda/remote/placed.c test/cuda/softgpu/driver.h
test_cuda_remote_placed_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_placed_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_pools_SOURCES = test/cuda/remote/pools.c test/cuda/softgpu/driver.h
test_cuda_remote_pools_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_pools_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_refusals_SOURCES = test/cuda/remote/refusals.c test/cuda/remote/refusing.h test/cuda/softgpu/driver.h
test_cuda_remote_refusals_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_refusals_LDADD = cuda_remote/client/libcuda.la
check_LTLIBRARIES += test/cuda/remote/refusing.la
test_cuda_remote_refusing_la_SOURCES = test/cuda/remote/refusing.c test/cuda/remote/refusing.h
test_cuda_remote_refusing_la_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_refusing_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere -Wl,-Bsymbolic
test_cuda_remote_refusing_la_LIBADD = test/cuda/softgpu/libcuda_double.la
check_LTLIBRARIES += test/cuda/remote/keeping.la
test_cuda_remote_keeping_la_SOURCES = test/cuda/remote/keeping.c
test_cuda_remote_keeping_la_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_keeping_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere -Wl,-Bsymbolic
test_cuda_remote_keeping_la_LIBADD = test/cuda/softgpu/libcuda_double.la
# Preloaded.
check_LTLIBRARIES += test/cuda/remote/occupy.la test/cuda/remote/drawn.la test/cuda/remote/sends.la \
	test/cuda/remote/late_threads.la
test_cuda_remote_late_threads_la_SOURCES = test/cuda/remote/late_threads.c
test_cuda_remote_late_threads_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere
test_cuda_remote_sends_la_SOURCES = test/cuda/remote/sends.c
test_cuda_remote_sends_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere
test_cuda_remote_drawn_la_SOURCES = test/cuda/remote/drawn.c
test_cuda_remote_drawn_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere
test_cuda_remote_occupy_la_SOURCES = test/cuda/remote/occupy.c
test_cuda_remote_occupy_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere
test_cuda_remote_servers_SOURCES = test/cuda/remote/servers.c test/cuda/softgpu/driver.h
test_cuda_remote_servers_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_servers_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_small_calls_SOURCES = test/cuda/remote/small_calls.c test/cuda/softgpu/driver.h
test_cuda_remote_small_calls_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_small_calls_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_softgpu_green_contexts_SOURCES = test/cuda/softgpu/green_contexts.c test/cuda/softgpu/driver.h
test_cuda_remote_softgpu_green_contexts_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_softgpu_green_contexts_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_softgpu_old_calls_SOURCES = test/cuda/softgpu/old_calls.c test/cuda/softgpu/driver.h
test_cuda_remote_softgpu_old_calls_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_remote_softgpu_old_calls_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_softgpu_references_SOURCES = test/cuda/softgpu/references.c test/cuda/softgpu/driver.h
test_cuda_remote_softgpu_references_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_softgpu_references_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_softgpu_tensor_maps_SOURCES = test/cuda/softgpu/tensor_maps.c test/cuda/softgpu/driver.h
test_cuda_remote_softgpu_tensor_maps_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_softgpu_tensor_maps_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_stream_memory_SOURCES = test/cuda/remote/stream_memory.c test/cuda/softgpu/driver.h
test_cuda_remote_stream_memory_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_stream_memory_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_threads_SOURCES = test/cuda/remote/threads.c
test_cuda_remote_threads_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_threads_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_usage_SOURCES = test/cuda/remote/usage.c
test_cuda_remote_usage_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_usage_LDADD = cuda_remote/client/libcuda.la cuda_remote/door/libhrdoor.la
test_cuda_remote_victim_SOURCES = test/cuda/remote/victim.c
test_cuda_remote_victim_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_victim_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_virtual_SOURCES = test/cuda/remote/virtual.c test/cuda/softgpu/driver.h
test_cuda_remote_virtual_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_virtual_LDADD = cuda_remote/client/libcuda.la
test_cuda_remote_rogue_SOURCES = test/cuda/remote/rogue.c
nodist_test_cuda_remote_rogue_SOURCES = cuda_remote/api/names.c
test_cuda_remote_rogue_CPPFLAGS = $(REMOTE_CPPFLAGS)
test_cuda_remote_rogue_LDADD = cuda_remote/door/libhrdoor.la ch3/libhrch3.la
