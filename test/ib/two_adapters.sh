#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite with two adapters that cannot reach each other's network.
export HR_VERBS_DOUBLE_DEVICES=2 HR_VERBS_DOUBLE_RAILS=1 HEADRACE_IB_DEVICE=double0,double1
exec "$top_srcdir/test/channel/conformance_verbs.sh" zerocopy
