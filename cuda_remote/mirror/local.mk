# SPDX-License-Identifier: BSD-3-Clause
# Memory that client and worker each have a copy of. The client library and the worker each compile these files.
MIRROR_SOURCES = \
	cuda_remote/mirror/changes.c \
	cuda_remote/mirror/mirror.h \
	cuda_remote/mirror/pages.c \
	cuda_remote/mirror/table.c
