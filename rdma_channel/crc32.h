/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 (ISO 3309, reflected, polynomial 0xedb88320), bit by bit: it is used rarely, and on short data. */
#ifndef HR_CRC32_H
#define HR_CRC32_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t hr_crc32(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint32_t crc = ~0u;
	for (size_t i = 0; i < n; i++) {
		crc ^= at[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

#endif
