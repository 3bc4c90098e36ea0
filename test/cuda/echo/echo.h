/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the echo driver and the program that compares have in common: the memory in which the program says which function is
 * recorded and what it returns, and in which the driver leaves what it was called with.
 */
#ifndef TEST_CUDA_ECHO_H
#define TEST_CUDA_ECHO_H

#include <stdint.h>

#define ECHO_RECORD_BYTES (4u << 20)
#define ECHO_DEVICES 2
/* The driver's number of its i-th device: not i, so that a number that is not translated is found. */
#define ECHO_DEVICE(i) (5 + 3 * (i))

struct echo_control {
	uint32_t armed;   /* index of the recorded function plus 1; 0: none is */
	int32_t result;   /* that it returns, unless an argument is wrong */
	uint64_t seed;    /* of the bytes that it returns */
	uint32_t calls;   /* of the recorded function */
	uint32_t refused; /* of these, calls with a wrong argument */
	uint32_t bytes;   /* of the record; more than ECHO_RECORD_BYTES: it is not complete */
	int32_t worker;   /* the process that was last called so: another one, which waits for a client, leaves nothing here */
	uint64_t context; /* that was current at the last call */
	uint64_t made;    /* handle of the object that this process made last, in whatever function */
	uint8_t record[ECHO_RECORD_BYTES];
};

/* A record is a list of pieces, each with this head, padded to 8 bytes. */
enum echo_piece_kind { ECHO_BYTES, ECHO_HANDLE, ECHO_STRUCTS };
struct echo_piece {
	uint8_t kind;      /* enum echo_piece_kind */
	uint8_t parameter; /* index */
	uint16_t type;     /* of structs: index of the struct */
	uint32_t bytes;    /* that follow */
};

/* The bytes that the driver returns for a parameter: a function of the seed, the parameter and the place. */
static inline uint64_t echo_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
