/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the fuzzer's input from its front. After its end there are zeros. */
#ifndef HR_FUZZ_INPUT_H
#define HR_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* Copies n bytes; if the input has fewer, the rest is 0. Returns the number of bytes from the input. */
static inline size_t fuzz_take(struct fuzz_input *input, void *to, size_t n)
{
	size_t have = n < input->left ? n : input->left;
	memset(to, 0, n);
	if (!have)
		return 0;
	memcpy(to, input->at, have);
	input->at += have;
	input->left -= have;
	return have;
}

static inline uint8_t fuzz_u8(struct fuzz_input *input)
{
	uint8_t value;
	fuzz_take(input, &value, sizeof value);
	return value;
}

static inline uint16_t fuzz_u16(struct fuzz_input *input)
{
	uint16_t value;
	fuzz_take(input, &value, sizeof value);
	return value;
}

static inline uint32_t fuzz_u32(struct fuzz_input *input)
{
	uint32_t value;
	fuzz_take(input, &value, sizeof value);
	return value;
}

#endif
