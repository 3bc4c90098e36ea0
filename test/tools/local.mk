# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += test/tools/info_test.sh test/tools/compare_test.sh test/tools/perf_test.sh test/tools/perf_hosts_test.sh test/tools/docs_style_test.sh test/tools/environment_test.sh test/tools/module_test.sh test/tools/scripts_test.sh
TESTS += test/tools/info_test.sh test/tools/compare_test.sh test/tools/perf_test.sh test/tools/perf_hosts_test.sh test/tools/docs_style_test.sh test/tools/environment_test.sh test/tools/module_test.sh test/tools/scripts_test.sh
EXTRA_DIST += test/tools/docs_style.py test/tools/environment.py
