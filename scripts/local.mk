# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/demo.sh %D%/lib.sh %D%/modulefile.in %D%/test.sh autogen.sh

# A module file whose name is the version, so that several versions can be beside each other.
modulefiledir = $(pkgdatadir)/modulefiles/headrace
modulefile_DATA = %D%/modulefile/$(PACKAGE_VERSION)
CLEANFILES += %D%/modulefile/$(PACKAGE_VERSION)
%D%/modulefile/$(PACKAGE_VERSION): %D%/modulefile.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' -e 's|@prefix[@]|$(prefix)|' -e 's|@bindir[@]|$(bindir)|' \
		-e 's|@libdir[@]|$(libdir)|' -e 's|@mandir[@]|$(mandir)|' -e 's|@docdir[@]|$(docdir)|' \
		$(srcdir)/scripts/modulefile.in > $@.new && mv $@.new $@
