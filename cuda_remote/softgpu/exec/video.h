/* SPDX-License-Identifier: BSD-3-Clause */
/* A video instruction as insn->imm holds it ("Scalar Video Instructions", "SIMD Video Instructions"). */
#ifndef SOFTGPU_EXEC_VIDEO_H
#define SOFTGPU_EXEC_VIDEO_H

#include <stdint.h>

enum video_op {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_ABSDIFF,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_AVERAGE,
	VIDEO_SET,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_MAD
};
enum video_second { VIDEO_NONE, VIDEO_SECOND_ADD, VIDEO_SECOND_MIN, VIDEO_SECOND_MAX, VIDEO_MERGE };
enum video_compare { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };

/*
 * Elements are the bytes 0 … 7, halves 0 … 3 or words 0 and 1 of b:a, by width; a scalar instruction takes one of each
 * source, from its own register. mask: which parts of the result are written, the others being c's.
 */
struct video {
	unsigned op : 4, second : 3, compare : 3;
	unsigned count : 3;                           /* 1, 2, 4 parts */
	unsigned signed_result : 1, signed_a : 1, signed_b : 1, saturate : 1, wrap : 1;
	unsigned negate_product : 1, negate_c : 1, plus_one : 1;
	unsigned shift : 4;                           /* vmad: .shr7, .shr15 */
	unsigned width_a : 2, width_b : 2, width : 2; /* log2 of a part's bytes */
	unsigned mask : 4;
	unsigned from_a : 12, from_b : 12;            /* elements, three bits each, the lowest part's first */
};
_Static_assert(sizeof(struct video) <= 8, "fits insn->imm");

#endif
