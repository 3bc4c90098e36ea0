HR_WITH_LIBRARY([sodium], [SODIUM], [libsodium], [sodium.h], [crypto_auth], [sodium],
  [no key files: headraced serves this host only])
# The relinkable runtime library keeps its inner names to itself.
AC_CHECK_TOOL([OBJCOPY], [objcopy], [objcopy])
