/* SPDX-License-Identifier: BSD-3-Clause */
/* Video instructions: modifiers and selectors to a struct video. */
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/video.h"

#include <string.h>

static const struct {
	const char *name;
	enum video_op op;
} operations[] = { { "vadd", VIDEO_ADD }, { "vsub", VIDEO_SUB }, { "vabsdiff", VIDEO_ABSDIFF }, { "vmin", VIDEO_MIN },
		   { "vmax", VIDEO_MAX }, { "vavrg", VIDEO_AVERAGE }, { "vset", VIDEO_SET }, { "vshl", VIDEO_SHL },
		   { "vshr", VIDEO_SHR }, { "vmad", VIDEO_MAD } };

static void read_opcode(struct decoder *decoder, struct video *video)
{
	const char *opcode = decoder->statement->opcode;
	size_t length = strlen(opcode);
	char last = opcode[length - 1];
	video->count = last == '2' ? 2 : last == '4' ? 4 : 1;
	length -= video->count > 1;
	for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
		if (strlen(operations[n].name) == length && !memcmp(operations[n].name, opcode, length)) {
			video->op = operations[n].op;
			return;
		}
	}
	decode_unsupported(decoder, "no such video instruction");
}

/* dtype.atype.btype; vset has no dtype, its result has no sign. */
static void read_types(struct decoder *decoder, struct video *video)
{
	const struct ptx_statement *statement = decoder->statement;
	bool is_set = video->op == VIDEO_SET, is_signed[3] = { false };
	uint32_t count = is_set ? 2 : 3;
	for (uint32_t n = 0; n < count; n++) {
		enum ptx_type type = n < statement->modifiers ? ptx_type_of(statement->modifier[n]) : PTX_NO_TYPE;
		if (type != PTX_U32 && type != PTX_S32)
			decode_invalid(decoder, "expected .u32 or .s32 for each operand");
		is_signed[n + is_set] = type == PTX_S32;
	}
	video->signed_result = is_signed[0];
	video->signed_a = is_signed[1];
	video->signed_b = is_signed[2];
}

static void read_modifiers(struct decoder *decoder, struct video *video)
{
	static const char *const compares[] = { ".eq", ".ne", ".lt", ".le", ".gt", ".ge" };
	bool shifts = video->op == VIDEO_SHL || video->op == VIDEO_SHR, compared = false;
	for (unsigned n = 0; n < 6; n++) {
		if (decode_has(decoder, compares[n])) {
			video->compare = n;
			compared = true;
		}
	}
	if (compared != (video->op == VIDEO_SET) ||
	    shifts != (decode_has(decoder, ".clamp") || decode_has(decoder, ".wrap")))
		decode_invalid(decoder, "a modifier is missing or not allowed");
	video->saturate = decode_has(decoder, ".sat");
	video->wrap = decode_has(decoder, ".wrap");
	video->plus_one = decode_has(decoder, ".po");
	video->shift = decode_has(decoder, ".shr7") ? 7 : decode_has(decoder, ".shr15") ? 15 : 0;
	video->second = decode_has(decoder, ".add")   ? VIDEO_SECOND_ADD
			: decode_has(decoder, ".min") ? VIDEO_SECOND_MIN
			: decode_has(decoder, ".max") ? VIDEO_SECOND_MAX
						      : VIDEO_NONE;
}

/* ".h1", ".b3210": log2 of an element's bytes; 2, a word, if there is none. */
static unsigned selector_width(const struct ptx_operand *operand)
{
	return operand->selector.length == 0 ? 2 : operand->selector.at[1] == 'h' ? 1 : 0;
}

/* The selector's elements, three bits each. wanted: their number; each must be below most. */
static unsigned selector_elements(struct decoder *decoder, const struct ptx_operand *operand, unsigned wanted,
				  unsigned most)
{
	struct ptx_text text = operand->selector;
	unsigned elements = 0;
	if (text.length != wanted + 2)
		decode_invalid(decoder, "the selector does not fit the instruction");
	for (unsigned n = 0; n < wanted; n++) {
		unsigned element = (unsigned)(text.at[text.length - 1 - n] - '0');
		if (element >= most)
			decode_invalid(decoder, "the selector names no element");
		elements |= element << 3 * n;
	}
	return elements;
}

static void read_scalar_selectors(struct decoder *decoder, struct video *video)
{
	struct ptx_operand *d = decode_operand(decoder, 0), *a = decode_operand(decoder, 1),
			   *b = decode_operand(decoder, 2);
	video->width_a = selector_width(a);
	video->width_b = selector_width(b);
	if (a->selector.length)
		video->from_a = selector_elements(decoder, a, 1, 4u >> video->width_a);
	/* In the pair b:a, b's elements come after a's. */
	video->from_b = 4u >> video->width_b;
	if (b->selector.length)
		video->from_b += selector_elements(decoder, b, 1, 4u >> video->width_b);
	video->width = selector_width(d);
	video->mask = 1;
	if (d->selector.length) {
		if (video->second != VIDEO_NONE)
			decode_invalid(decoder, "a second operation and a part of the result");
		video->second = VIDEO_MERGE;
		video->mask = 1u << selector_elements(decoder, d, 1, 4u >> video->width);
	}
}

static void read_vector_selectors(struct decoder *decoder, struct video *video)
{
	struct ptx_operand *d = decode_operand(decoder, 0), *a = decode_operand(decoder, 1),
			   *b = decode_operand(decoder, 2);
	unsigned width = video->count == 4 ? 0 : 1, count = video->count;
	video->width = video->width_a = video->width_b = width;
	video->from_a = count == 4 ? 03210 : 010;
	video->from_b = count == 4 ? 07654 : 032;
	if ((a->selector.length && selector_width(a) != width) || (b->selector.length && selector_width(b) != width) ||
	    (d->selector.length && selector_width(d) != width))
		decode_invalid(decoder, "the selector does not fit the instruction");
	if (a->selector.length)
		video->from_a = selector_elements(decoder, a, count, 2 * count);
	if (b->selector.length)
		video->from_b = selector_elements(decoder, b, count, 2 * count);
	video->mask = (1u << count) - 1;
	if (!d->selector.length)
		return;
	video->mask = 0;
	for (size_t n = 2; n < d->selector.length; n++) {
		unsigned part = (unsigned)(d->selector.at[n] - '0');
		if (part >= count)
			decode_invalid(decoder, "the selector names no element");
		video->mask |= 1u << part;
	}
}

/* -a, -b, -c of vmad. */
static void read_signs(struct decoder *decoder, struct video *video)
{
	bool a = decode_operand(decoder, 1)->negated, b = decode_operand(decoder, 2)->negated;
	bool c = decode_operand(decoder, 3)->negated;
	if (video->second != VIDEO_NONE || video->count > 1)
		decode_invalid(decoder, "vmad takes no second operation");
	if ((a != b && c) || ((a || b || c) && video->plus_one))
		decode_invalid(decoder, "more than one operand is negated");
	video->negate_product = a != b;
	video->negate_c = c;
	video->signed_result = video->signed_a || video->signed_b || a != b || c;
}

static struct value source(struct decoder *decoder, uint32_t n)
{
	struct ptx_operand operand = *decode_operand(decoder, n);
	operand.next = NULL;
	operand.negated = false;
	return decode_source(decoder, &operand, 'w');
}

void decode_video(struct decoder *decoder)
{
	struct video video = { 0 };
	read_opcode(decoder, &video);
	read_types(decoder, &video);
	read_modifiers(decoder, &video);
	if (video.count > 1)
		read_vector_selectors(decoder, &video);
	else
		read_scalar_selectors(decoder, &video);
	bool wants_c = video.count > 1 || video.second != VIDEO_NONE || video.op == VIDEO_MAD;
	decode_operand_count(decoder, wants_c ? 4 : 3, wants_c ? 4 : 3);
	if (video.op == VIDEO_MAD)
		read_signs(decoder, &video);
	struct value a = source(decoder, 1), b = source(decoder, 2);
	struct value c = wants_c ? source(decoder, 3) : decode_constant(decoder, 0, 4);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_video);
	decode_define(draft, 0, result);
	decode_use(draft, 1, a);
	decode_use(draft, 2, b);
	decode_use(draft, 3, c);
	memcpy(&draft->insn.imm, &video, sizeof video);
}
