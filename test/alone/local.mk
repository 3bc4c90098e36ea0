# SPDX-License-Identifier: BSD-3-Clause
# The channel as somebody uses it who has nothing else of this tree.
dist_check_SCRIPTS += %D%/api_test.sh %D%/examples_test.sh
EXTRA_DIST += %D%/api.py
TESTS += %D%/api_test.sh %D%/examples_test.sh
