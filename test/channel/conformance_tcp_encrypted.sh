#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over TCP with keys on every connection: encrypted records instead of frames.
exec "$top_builddir/test/channel/conformance_encrypted" --transport tcp
