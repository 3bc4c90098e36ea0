#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI programs with two and four ranks over TCP.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
whole_suite tcp
