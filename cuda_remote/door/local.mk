# SPDX-License-Identifier: BSD-3-Clause
noinst_HEADERS += cuda_remote/door/door.h cuda_remote/door/server.h
