# SPDX-License-Identifier: BSD-3-Clause
# Managed memory. The software GPU and the forwarding client each compile these files for their library.
MANAGED_TWICE = cuda_remote/managed/managed_twice.c
MANAGED_SOURCES = \
	cuda_remote/managed/advice.c \
	cuda_remote/managed/managed.h \
	cuda_remote/managed/range.c \
	cuda_remote/managed/range.h
