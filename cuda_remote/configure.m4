HR_WITH_LIBRARY([sodium], [SODIUM], [libsodium], [sodium.h], [crypto_auth], [sodium],
  [no key files: headraced serves this host only])
