# SPDX-License-Identifier: BSD-3-Clause
# How a client reaches a server. For the client library and for the daemon.
# The core is for what brings logging and settings with another library, such as the client.
noinst_LTLIBRARIES += cuda_remote/door/libhrdoorcore.la cuda_remote/door/libhrdoor.la
cuda_remote_door_libhrdoorcore_la_SOURCES = \
	cuda_remote/door/door.h cuda_remote/door/server_handshake.c \
	cuda_remote/door/answer.h cuda_remote/door/answer.c \
	cuda_remote/door/counters.h cuda_remote/door/counters.c \
	cuda_remote/door/key.c \
	cuda_remote/door/pass.c \
	cuda_remote/door/listen.h cuda_remote/door/listen.c \
	cuda_remote/door/identity.h cuda_remote/door/identity.c \
	cuda_remote/door/proof.h \
	cuda_remote/door/server_name.h cuda_remote/door/server_name.c \
	cuda_remote/door/call_list.c cuda_remote/door/client_handshake.c \
	cuda_remote/door/munge.h cuda_remote/door/munge_queue.c \
	cuda_remote/door/wire.h cuda_remote/door/wire.c
nodist_cuda_remote_door_libhrdoorcore_la_SOURCES = cuda_remote/door/build.c
cuda_remote_door_libhrdoorcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
cuda_remote_door_libhrdoorcore_la_CFLAGS = $(HR_CFLAGS) $(SODIUM_CFLAGS) $(MUNGE_CFLAGS)
cuda_remote_door_libhrdoorcore_la_LIBADD = $(SODIUM_LIBS)
cuda_remote_door_libhrdoor_la_SOURCES =
cuda_remote_door_libhrdoor_la_LIBADD = cuda_remote/door/libhrdoorcore.la rdma_channel/base/libhrbase.la
if HAVE_SODIUM
cuda_remote_door_libhrdoorcore_la_SOURCES += cuda_remote/door/proof_sodium.c
if HAVE_MUNGE
cuda_remote_door_libhrdoorcore_la_SOURCES += cuda_remote/door/munge.c
cuda_remote_door_libhrdoorcore_la_LIBADD += $(MUNGE_LIBS)
else
cuda_remote_door_libhrdoorcore_la_SOURCES += cuda_remote/door/munge_none.c
endif
else
cuda_remote_door_libhrdoorcore_la_SOURCES += cuda_remote/door/proof_none.c cuda_remote/door/munge_none.c
endif

# The headers that define messages: see build.py.
DOOR_BUILD_INPUTS = cuda_remote/wire.h cuda_remote/door/wire.h cuda_remote/door/counters.h
CLEANFILES += cuda_remote/door/build.c
EXTRA_DIST += cuda_remote/door/build.py
cuda_remote/door/build.c: cuda_remote/door/build.py cuda_remote/api/wire.txt $(DOOR_BUILD_INPUTS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && here=`pwd` && cd $(srcdir) && $(PYTHON) -B cuda_remote/door/build.py \
		"$$here/cuda_remote/api/wire.txt" $(DOOR_BUILD_INPUTS) > "$$here/$@.new" && cd "$$here" && mv $@.new $@
