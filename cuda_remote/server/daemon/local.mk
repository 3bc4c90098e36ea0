# SPDX-License-Identifier: BSD-3-Clause
# headraced without the worker: it calls the functions of worker.h, so that tests can link another worker.
noinst_LTLIBRARIES += cuda_remote/server/daemon/libhrdaemon.la
cuda_remote_server_daemon_libhrdaemon_la_SOURCES = \
	cuda_remote/server/daemon/child.h cuda_remote/server/daemon/child.c \
	cuda_remote/server/daemon/config.h cuda_remote/server/daemon/config.c \
	cuda_remote/server/daemon/confine.h cuda_remote/server/daemon/confine.c \
	cuda_remote/server/daemon/daemon.h cuda_remote/server/daemon/daemon.c \
	cuda_remote/server/daemon/filter.h \
	cuda_remote/server/daemon/gpus.h cuda_remote/server/daemon/gpus.c \
	cuda_remote/server/daemon/launch.h cuda_remote/server/daemon/launch.c \
	cuda_remote/server/daemon/limits.h cuda_remote/server/daemon/limits.c \
	cuda_remote/server/daemon/log_place.h cuda_remote/server/daemon/log_place.c \
	cuda_remote/server/daemon/metrics.h cuda_remote/server/daemon/metrics.c \
	cuda_remote/server/daemon/metrics_http.h cuda_remote/server/daemon/metrics_http.c \
	cuda_remote/server/daemon/metrics_process.h cuda_remote/server/daemon/metrics_process.c \
	cuda_remote/server/daemon/metrics_text.h cuda_remote/server/daemon/metrics_text.c \
	cuda_remote/server/daemon/options.h cuda_remote/server/daemon/options.c \
	cuda_remote/server/daemon/pool.h cuda_remote/server/daemon/pool.c \
	cuda_remote/server/daemon/tally.h cuda_remote/server/daemon/tally.c \
	cuda_remote/server/daemon/systemd.h cuda_remote/server/daemon/systemd.c \
	cuda_remote/server/daemon/main.c
cuda_remote_server_daemon_libhrdaemon_la_CPPFLAGS = $(AM_CPPFLAGS) -DHR_VERSION='"$(PACKAGE_VERSION)"'
cuda_remote_server_daemon_libhrdaemon_la_CFLAGS = $(HR_CFLAGS) $(SECCOMP_CFLAGS)
if HAVE_SECCOMP
cuda_remote_server_daemon_libhrdaemon_la_SOURCES += cuda_remote/server/daemon/filter_seccomp.c
else
cuda_remote_server_daemon_libhrdaemon_la_SOURCES += cuda_remote/server/daemon/filter_none.c
endif
cuda_remote_server_daemon_libhrdaemon_la_LIBADD = cuda_remote/door/libhrdoor.la cuda_remote/run/libhrlayout.la $(SECCOMP_LIBS)

dist_man_MANS += docs/man/headraced.8 docs/man/headraced.conf.5

# Units to copy or link into systemd's folder.
pkgdata_DATA = cuda_remote/server/headraced.service
dist_pkgdata_DATA = cuda_remote/server/headraced.socket cuda_remote/server/headraced.conf
EXTRA_DIST += cuda_remote/server/headraced.service.in
CLEANFILES += cuda_remote/server/headraced.service
cuda_remote/server/headraced.service: cuda_remote/server/headraced.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed 's|@sbindir[@]|$(sbindir)|; s|@sysconfdir[@]|$(sysconfdir)|' $(srcdir)/cuda_remote/server/headraced.service.in > $@.new && mv $@.new $@

# An administrator's headraced.conf is neither replaced nor removed.
headraced_conf = $(DESTDIR)$(sysconfdir)/headrace/headraced.conf
install-data-local:
	$(MKDIR_P) $(DESTDIR)$(sysconfdir)/headrace
	test -e $(headraced_conf) || $(INSTALL_DATA) $(srcdir)/cuda_remote/server/headraced.conf $(headraced_conf)
uninstall-local:
	! cmp -s $(srcdir)/cuda_remote/server/headraced.conf $(headraced_conf) || rm -f $(headraced_conf)
	rmdir $(DESTDIR)$(sysconfdir)/headrace 2>/dev/null || :
