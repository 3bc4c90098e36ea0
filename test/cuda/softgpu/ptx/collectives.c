/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shfl, vote, match, redux and activemask in every form, for several sets of members while the other lanes go another
 * way, against the ISA's definitions ("Parallel Synchronization and Communication Instructions").
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <string.h>

#define THREADS 64 /* two warps of other values */
#define SENTINEL 0xabababababababab

static const uint32_t member_sets[] = { 0xffffffff, 0x55555555, 0xaaaaaaaa, 0x0000ffff, 0xfffe0001, 0x00000001,
					0x80000000, 0x40000010, 0x9e3779b9, 0x7fffffff };
/* shfl's c: the clamp in bits 0 … 4, the mask of segments in 8 … 12 */
static const uint32_t segments[] = { 0x1f, 0, 0x1c1f, 0x1800, 0x1007, 0x1e03, 0x0a15, 0x1f1f };
static const char *const modes[] = { "up", "down", "bfly", "idx" };
static const char *const votes[] = { "all", "any", "uni", "ballot" };
static const char *const reductions[] = { "add.u32", "add.s32", "min.u32", "max.u32", "min.s32",
					  "max.s32", "and.b32", "or.b32",  "xor.b32" };
enum {
	SEGMENTS = sizeof segments / sizeof *segments, MODES = 4, VOTES = 4, MATCHES = 4,
	REDUCTIONS = sizeof reductions / sizeof *reductions,
	SHUFFLE = 0, VOTE = SHUFFLE + 2 * SEGMENTS * MODES, MATCH = VOTE + 2 * VOTES, REDUCE = MATCH + MATCHES + 2,
	ACTIVE = REDUCE + REDUCTIONS, WORDS
};

/* What each thread brings. */
struct lane {
	uint64_t value;
	uint32_t distance, truth;
};
static struct lane lanes[THREADS];

static void fill(unsigned kind)
{
	uint64_t state = 12345 + kind;
	for (unsigned n = 0; n < THREADS; n++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		/* Values that are alike in places, or everywhere, so that there is something to match. */
		uint64_t value = kind == 0 ? state : kind == 1 ? state >> 62 << 31 : kind == 2 ? 0x8000000080000000 :
				 state >> 60 << 32 | (state >> 40 & 1);
		lanes[n] = (struct lane){ value, (uint32_t)(state >> 33) & 63,
					  kind == 2 ? n >= 32 : (uint32_t)(state >> 50 & 1) };
	}
}

/* One word of the output from a register of 32 bits or a predicate. */
static void put_word(unsigned word, const char *name)
{
	if (name[0] == 'p')
		say(" selp.u32 w, 1, 0, %s;", name);
	say(" st.global.u32 [out+%u], %s;\n", 8 * word, name[0] == 'p' ? "w" : name);
}

static void put_instructions(uint32_t members)
{
	for (unsigned s = 0; s < SEGMENTS; s++)
		for (unsigned m = 0; m < MODES; m++) {
			say("shfl.sync.%s.b32 r|p, v, distance, %u, %u;", modes[m], segments[s], members);
			put_word(SHUFFLE + 2 * (s * MODES + m), "r");
			put_word(SHUFFLE + 2 * (s * MODES + m) + 1, "p");
		}
	for (unsigned v = 0; v < VOTES; v++)
		for (unsigned negated = 0; negated < 2; negated++) {
			bool ballot = !strcmp(votes[v], "ballot");
			say("vote.sync.%s.%s %s, %sq, %u;", votes[v], ballot ? "b32" : "pred", ballot ? "r" : "p",
			    negated ? "!" : "", members);
			put_word(VOTE + 2 * v + negated, ballot ? "r" : "p");
		}
	say("match.any.sync.b32 r, v, %u;", members);
	put_word(MATCH, "r");
	say("match.any.sync.b64 r, l, %u;", members);
	put_word(MATCH + 1, "r");
	for (unsigned wide = 0; wide < 2; wide++) {
		say("match.all.sync.b%u r|p, %s, %u;", wide ? 64 : 32, wide ? "l" : "v", members);
		put_word(MATCH + 2 + 2 * wide, "r");
		put_word(MATCH + 3 + 2 * wide, "p");
	}
	for (unsigned n = 0; n < REDUCTIONS; n++) {
		say("redux.sync.%s r, v, %u;", reductions[n], members);
		put_word(REDUCE + n, "r");
	}
	say("activemask.b32 r;");
	put_word(ACTIVE, "r");
}

static const uint64_t *run(uint32_t members)
{
	struct {
		struct lane *in;
		uint64_t *out;
	} parameters = { device_alloc(sizeof lanes), device_alloc(THREADS * WORDS * 8) };
	memcpy(parameters.in, lanes, sizeof lanes);
	memset(parameters.out, SENTINEL & 255, THREADS * WORDS * 8);
	text_begin();
	say(".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 in, out, at, l;\n"
	    ".reg .b32 v, r, w, t, distance; .reg .pred p, q, here; ld.param.u64 in, [a]; ld.param.u64 out, [b]; mov.u32 t, %%tid.x;\n"
	    "mul.wide.u32 at, t, 16; add.u64 in, in, at; mul.wide.u32 at, t, %u; add.u64 out, out, at;\n"
	    "ld.global.u64 l, [in]; ld.global.u32 v, [in]; ld.global.v2.u32 {distance, w}, [in+8];\n"
	    "setp.ne.u32 q, w, 0; mov.u32 w, %%lanemask_eq; and.b32 w, w, %u; setp.ne.u32 here, w, 0;\n@!here bra END;\n",
	    WORDS * 8, members);
	put_instructions(members);
	say("END: ret;\n}\n");
	ck_assert_int_eq(text_run(1, THREADS, &parameters), CUDA_SUCCESS);
	return parameters.out;
}

/* ---- what the ISA says */
struct shuffled {
	uint32_t value, valid;
	bool open; /* from a lane that does not take part */
};

static struct shuffled shuffle(unsigned mode, uint32_t c, const struct lane *warp, uint32_t lane, uint32_t members)
{
	uint32_t b = warp[lane].distance & 31, clamp = c & 31, segment = c >> 8 & 31;
	int32_t most = (int32_t)((lane & segment) | (clamp & ~segment & 31)), least = (int32_t)(lane & segment), from;
	bool valid;
	switch (mode) {
	case 0: from = (int32_t)lane - (int32_t)b; valid = from >= most; break;
	case 1: from = (int32_t)(lane + b); valid = from <= most; break;
	case 2: from = (int32_t)(lane ^ b); valid = from <= most; break;
	default: from = least | (int32_t)(b & ~segment); valid = from <= most;
	}
	if (!valid)
		from = (int32_t)lane;
	return (struct shuffled){ (uint32_t)warp[from].value, valid, !(members >> from & 1) };
}

static uint32_t vote(unsigned kind, bool negated, const struct lane *warp, uint32_t members)
{
	uint32_t ballot = 0;
	for (uint32_t n = 0; n < 32; n++)
		ballot |= (uint32_t)((warp[n].truth != 0) != negated) << n;
	ballot &= members;
	switch (kind) {
	case 0: return ballot == members;
	case 1: return ballot != 0;
	case 2: return !ballot || ballot == members;
	default: return ballot;
	}
}

static uint32_t alike(const struct lane *warp, uint64_t value, bool wide, uint32_t members)
{
	uint32_t mask = 0;
	for (uint32_t n = 0; n < 32; n++)
		mask |= (uint32_t)(wide ? warp[n].value == value : (uint32_t)warp[n].value == (uint32_t)value) << n;
	return mask & members;
}

static uint32_t reduce(unsigned kind, const struct lane *warp, uint32_t members)
{
	uint32_t result = (uint32_t)warp[__builtin_ctz(members)].value;
	for (uint32_t rest = members & (members - 1); rest; rest &= rest - 1) {
		uint32_t v = (uint32_t)warp[__builtin_ctz(rest)].value;
		switch (kind) {
		case 0: case 1: result += v; break;
		case 2: result = v < result ? v : result; break;
		case 3: result = v > result ? v : result; break;
		case 4: result = (int32_t)v < (int32_t)result ? v : result; break;
		case 5: result = (int32_t)v > (int32_t)result ? v : result; break;
		case 6: result &= v; break;
		case 7: result |= v; break;
		default: result ^= v;
		}
	}
	return result;
}

static void expect(const uint64_t *out, unsigned word, uint32_t want, const char *what, uint32_t lane, uint32_t members)
{
	ck_assert_msg((uint32_t)out[word] == want, "%s: lane %u of %08x gets %08x, not %08x", what, lane, members,
		      (uint32_t)out[word], want);
}

static void check_lane(const uint64_t *out, const struct lane *warp, uint32_t lane, uint32_t members)
{
	for (unsigned s = 0; s < SEGMENTS; s++)
		for (unsigned m = 0; m < MODES; m++) {
			struct shuffled want = shuffle(m, segments[s], warp, lane, members);
			unsigned word = SHUFFLE + 2 * (s * MODES + m);
			if (!want.open)
				expect(out, word, want.value, modes[m], lane, members);
			expect(out, word + 1, want.valid, modes[m], lane, members);
		}
	for (unsigned v = 0; v < VOTES; v++)
		for (unsigned negated = 0; negated < 2; negated++)
			expect(out, VOTE + 2 * v + negated, vote(v, negated, warp, members), votes[v], lane, members);
	for (unsigned wide = 0; wide < 2; wide++) {
		uint32_t same = alike(warp, warp[lane].value, wide, members);
		expect(out, MATCH + wide, same, "match.any", lane, members);
		expect(out, MATCH + 2 + 2 * wide, same == members ? members : 0, "match.all", lane, members);
		expect(out, MATCH + 3 + 2 * wide, same == members, "match.all's predicate", lane, members);
	}
	for (unsigned n = 0; n < REDUCTIONS; n++)
		expect(out, REDUCE + n, reduce(n, warp, members), reductions[n], lane, members);
	expect(out, ACTIVE, members, "activemask", lane, members);
}

START_TEST(members_get_what_the_isa_defines)
{
	uint32_t members = member_sets[_i % (int)(sizeof member_sets / sizeof *member_sets)];
	fill((unsigned)_i / (sizeof member_sets / sizeof *member_sets));
	const uint64_t *out = run(members);
	for (uint32_t thread = 0; thread < THREADS; thread++, out += WORDS) {
		if (members >> thread % 32 & 1)
			check_lane(out, lanes + thread / 32 * 32, thread % 32, members);
		for (unsigned n = 0; n < WORDS; n++) {
			uint64_t kept = members >> thread % 32 & 1 ? SENTINEL >> 32 : SENTINEL;
			ck_assert(members >> thread % 32 & 1 ? out[n] >> 32 == kept : out[n] == kept);
		}
	}
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx collectives");
	tcase_add_loop_test(cases, members_get_what_the_isa_defines, 0,
			    4 * (int)(sizeof member_sets / sizeof *member_sets));
	return run_tests();
}
