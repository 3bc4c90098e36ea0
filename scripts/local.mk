# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/demo.sh %D%/lib.sh %D%/test.sh autogen.sh
