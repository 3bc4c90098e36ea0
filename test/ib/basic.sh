#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
exec "$top_srcdir/test/channel/conformance_verbs.sh" basic
