/* SPDX-License-Identifier: BSD-3-Clause */
/* Several texts into one program: what each name means, and what is refused. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.4\n.target sm_75\n.address_size 64\n"
#define UNITS_MAX 4

static CUresult link_texts(const char *const texts[], bool on_demand, softgpu_log_t *log, softgpu_program_t **program)
{
	static const char *const names[UNITS_MAX] = { "a.ptx", "b.ptx", "c.ptx", "d.ptx" };
	softgpu_unit_t units[UNITS_MAX];
	char *copies[UNITS_MAX];
	size_t count = 0;
	for (; count < UNITS_MAX && texts[count]; count++) {
		size_t size = sizeof HEAD + strlen(texts[count]);
		copies[count] = malloc(size);
		snprintf(copies[count], size, "%s%s", HEAD, texts[count]);
		units[count] = (softgpu_unit_t){ names[count], copies[count], size - 1, on_demand && count };
	}
	CUresult result = softgpu_program_link(units, count, log, program);
	/* The texts are the caller's, who may free them. */
	for (size_t n = 0; n < count; n++) {
		memset(copies[n], 'x', strlen(copies[n]));
		free(copies[n]);
	}
	return result;
}

/* Links, launches k(u64 result) with one thread and 60 bytes of dynamic shared memory, and hands out what it left. */
static void run_linked(const char *const texts[], bool on_demand, uint64_t *results, size_t count)
{
	char text[512] = "";
	softgpu_log_t log = { text, sizeof text, 0 };
	softgpu_program_t *program;
	CUresult result = link_texts(texts, on_demand, &log, &program);
	ck_assert_msg(result == CUDA_SUCCESS, "link gave %d: %s", (int)result, text);
	uint64_t *memory = device_alloc(count * sizeof *memory);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 },
				    .dynamic_shared = 60, .parameters = &memory };
	ck_assert_int_eq(softgpu_launch(&launch), CUDA_SUCCESS);
	memcpy(results, memory, count * sizeof *memory);
	softgpu_program_unload(program);
	device_reset();
}

#define KERNEL(text) ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<8>; .reg .b64 %l<8>;\nld.param.u64 %l1, [p];\n" text \
	"\nret;\n}\n"
#define CALL(function) "{ .param .b32 out; call.uni (out), " function "; ld.param.b32 %r1, [out]; }\n"
#define STORE(n) "cvt.u64.u32 %l2, %r1; st.global.u64 [%l1+8*" #n "], %l2;\n"
#define GIVES(linkage, name, value) linkage " .func (.param .b32 r) " name "() { .reg .b32 %r<2>; mov.b32 %r1, " value \
	"; st.param.b32 [r], %r1; ret; }\n"
#define DECLARES(name) ".extern .func (.param .b32 r) " name "();\n"

START_TEST(names_are_found_in_other_units)
{
	uint64_t results[4];
	run_linked((const char *const[]){
		DECLARES("seven") ".extern .global .u32 there;\n.extern .const .u32 table[4];\n"
		".visible .global .u32 here = 11;\n"
		KERNEL(CALL("seven") STORE(0) "ld.global.u32 %r1, [there];" STORE(1)
		       "ld.const.u32 %r1, [table+8];" STORE(2) CALL("seven") STORE(3)),
		".extern .global .u32 here;\n.visible .global .u32 there = 5;\n"
		".visible .const .u32 table[4] = { 1, 2, 3, 4 };\n"
		".visible .func (.param .b32 r) seven()\n{ .reg .b32 %r<3>; ld.global.u32 %r1, [here];"
		"add.u32 %r2, %r1, 7; st.param.b32 [r], %r2; add.u32 %r1, %r1, 1; st.global.u32 [here], %r1; ret; }\n",
		NULL }, false, results, 4);
	ck_assert_uint_eq(results[0], 18);
	ck_assert_uint_eq(results[1], 5);
	ck_assert_uint_eq(results[2], 3);
	ck_assert_uint_eq(results[3], 19);
}
END_TEST

START_TEST(local_names_stay_apart)
{
	uint64_t results[4];
	run_linked((const char *const[]){
		GIVES("", "mine", "1") ".global .u32 own = 10;\n" DECLARES("other")
		KERNEL(CALL("mine") STORE(0) "ld.global.u32 %r1, [own];" STORE(1) CALL("other") STORE(2)),
		GIVES("", "mine", "2") ".global .u32 own = 20;\n"
		".visible .func (.param .b32 r) other() { .reg .b32 %r<4>; .param .b32 out; call.uni (out), mine;"
		"ld.param.b32 %r1, [out]; ld.global.u32 %r2, [own]; add.u32 %r3, %r1, %r2; st.param.b32 [r], %r3; ret; }\n",
		NULL }, false, results, 3);
	ck_assert_uint_eq(results[0], 1);
	ck_assert_uint_eq(results[1], 10);
	ck_assert_uint_eq(results[2], 22);
}
END_TEST

START_TEST(a_local_declaration_is_not_another_units_name)
{
	char text[512] = "";
	softgpu_log_t log = { text, sizeof text, 0 };
	softgpu_program_t *program;
	ck_assert_int_eq(link_texts((const char *const[]){ ".func (.param .b32 r) f();\n" KERNEL(CALL("f") STORE(0)),
							   GIVES(".visible", "f", "1"), NULL },
				    false, &log, &program),
			 CUDA_ERROR_INVALID_SOURCE);
	ck_assert_msg(strstr(text, "undefined reference to f"), "%s", text);
}
END_TEST

START_TEST(initialisers_hold_addresses_of_other_units)
{
	uint64_t results[3];
	run_linked((const char *const[]){
		".extern .global .u32 x[4];\n" DECLARES("f")
		".global .u64 table[3] = { x+8, generic(x), f };\n"
		KERNEL("ld.global.u64 %l3, [table]; ld.global.u32 %r1, [%l3];" STORE(0)
		       "ld.global.u64 %l3, [table+8]; ld.u32 %r1, [%l3+4];" STORE(1)
		       "ld.global.u64 %l3, [table+16]; { .param .b32 out; P: .callprototype (.param .b32 _) _ ();"
		       "call (out), %l3, P; ld.param.b32 %r1, [out]; }" STORE(2)),
		".visible .global .u32 x[4] = { 21, 22, 23, 24 };\n" GIVES(".visible", "f", "9"), NULL },
		false, results, 3);
	ck_assert_uint_eq(results[0], 23);
	ck_assert_uint_eq(results[1], 22);
	ck_assert_uint_eq(results[2], 9);
}
END_TEST

/* A strong definition before or behind a weak one, two weak ones, and common ones of two sizes. */
START_TEST(weak_and_common_definitions_give_way)
{
	uint64_t results[6];
	run_linked((const char *const[]){
		GIVES(".weak", "f", "1") GIVES(".weak", "g", "2") GIVES(".visible", "h", "3")
		".weak .global .u32 w = 4;\n.common .global .u32 c[2];\n.common .global .u32 d;\n"
		KERNEL(CALL("f") STORE(0) CALL("g") STORE(1) CALL("h") STORE(2) "ld.global.u32 %r1, [w];" STORE(3)
		       "ld.global.u32 %r1, [c+12];" STORE(4) "ld.global.u32 %r1, [d];" STORE(5)),
		GIVES(".weak", "f", "10") GIVES(".visible", "g", "20") GIVES(".weak", "h", "30")
		".visible .global .u32 w = 40;\n.common .global .u32 c[4] = { 50, 51, 52, 53 };\n"
		".visible .global .u32 d = 60;\n", NULL }, false, results, 6);
	static const uint64_t wanted[6] = { 1, 20, 3, 40, 53, 60 };
	for (int n = 0; n < 6; n++)
		ck_assert_msg(results[n] == wanted[n], "result %d is %llu", n, (unsigned long long)results[n]);
}
END_TEST

START_TEST(a_dropped_definition_leaves_no_memory_of_its_own)
{
	softgpu_program_t *program;
	uint64_t address, size;
	ck_assert_int_eq(link_texts((const char *const[]){ ".weak .global .u32 w[3];\n" KERNEL(""),
							   ".visible .global .u32 w[3];\n.global .u32 only;\n", NULL },
				    false, NULL, &program), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_program_variable(program, "w", &address, &size), CUDA_SUCCESS);
	ck_assert_uint_eq(size, 12);
	uint64_t other;
	ck_assert_int_eq(softgpu_program_variable(program, "only", &other, &size), CUDA_SUCCESS);
	ck_assert_uint_eq(other - address, 12);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(shared_memory_is_one_for_all_units)
{
	uint64_t results[3];
	run_linked((const char *const[]){
		".extern .shared .align 16 .b8 dynamic[];\n.extern .shared .u32 fixed[4];\n" DECLARES("f")
		KERNEL("mov.b32 %r1, 77; st.shared.u32 [fixed+8], %r1; st.shared.u32 [dynamic+4], %r1;"
		       CALL("f") STORE(0)),
		".visible .shared .u32 fixed[4];\n.extern .shared .align 8 .b8 dynamic[];\n"
		".visible .func (.param .b32 r) f() { .reg .b32 %r<4>; ld.shared.u32 %r1, [fixed+8];"
		"st.param.b32 [r], %r1; ret; }\n", NULL }, false, results, 1);
	ck_assert_uint_eq(results[0], 77);
}
END_TEST

START_TEST(a_vector_may_end_behind_the_dynamic_shared_memory)
{
	uint64_t results[1];
	run_linked((const char *const[]){
		".extern .shared .align 16 .b8 dynamic[];\n"
		KERNEL("mov.b32 %r1, 77; st.shared.u32 [dynamic+56], %r1; .pragma \"used_bytes_mask 0xfff\";"
		       "ld.shared.v4.b32 {%r2, %r3, %r1, %r4}, [dynamic+48];" STORE(0)), NULL }, false, results, 1);
	ck_assert_uint_eq(results[0], 77);
}
END_TEST

/* c is wanted by b only, and a wants b; d is wanted by nobody, and would not link. */
START_TEST(libraries_give_what_is_wanted)
{
	uint64_t results[1];
	run_linked((const char *const[]){
		DECLARES("f") KERNEL(CALL("f") STORE(0)),
		".extern .global .u32 x;\n.visible .func (.param .b32 r) f() { .reg .b32 %r<4>; ld.global.u32 %r1, [x];"
		"st.param.b32 [r], %r1; ret; }\n",
		".visible .global .u32 x = 99;\n",
		GIVES(".visible", "k", "1") GIVES(".visible", "f", "3") DECLARES("nowhere")
		".visible .func g() { .param .b32 out; call.uni (out), nowhere; ret; }\n" }, true, results, 1);
	ck_assert_uint_eq(results[0], 99);
}
END_TEST

static const struct {
	const char *first, *second;
	const char *says[3];
} refused[] = {
	{ GIVES(".visible", "f", "1"), "\n" GIVES(".visible", "f", "2"), { "b.ptx: ptx line 5", "multiple", "a.ptx, line 4" } },
	{ ".visible .global .u32 x;", ".visible .global .u32 x;", { "multiple definition of x" } },
	{ ".common .global .u32 x = 1;", ".common .global .u32 x = 2;", { "multiple definition of x" } },
	{ ".common .global .u32 x = 1;", ".common .global .u32 x[2];", { "largest" } },
	{ DECLARES("f") KERNEL(CALL("f")), "", { "undefined reference to f (in a.ptx)" } },
	{ DECLARES("f") ".extern .global .u32 v;\n" KERNEL(CALL("f") "ld.global.u32 %r1, [v];"), "", { "v (in", "f (in" } },
	{ ".extern .global .u32 v; .global .u64 t = v;", "", { "undefined reference to v" } },
	{ DECLARES("f") KERNEL(CALL("f")), GIVES("", "f", "1"), { "undefined reference to f" } },
	{ ".extern .func (.param .b32 r) f(.param .b32 a);", GIVES(".visible", "f", "1"), { "a.ptx", "list of parameters" } },
	{ ".extern .func (.param .b64 r) f();", GIVES(".visible", "f", "1"), { "list of parameters" } },
	{ ".extern .func f();", GIVES(".visible", "f", "1"), { "list of parameters" } },
	{ ".extern .global .u32 f;", GIVES(".visible", "f", "1"), { "kind" } },
	{ ".visible .global .u32 f;", GIVES(".visible", "f", "1"), { "b.ptx", "kind" } },
	{ ".extern .func k();", KERNEL(""), { "kernel" } },
	{ ".extern .const .u32 v;", ".visible .global .u32 v;", { "state space" } },
	{ ".extern .global .u32 v[2];", ".visible .global .u32 v;", { "size" } },
	{ ".weak .global .u64 v;", ".visible .global .u32 v;", { "size" } },
	{ ".extern .shared .u32 s[4];\n" KERNEL("st.shared.u32 [s], %r1;"), "", { "undefined reference to s" } },
};

START_TEST(what_does_not_fit_is_refused)
{
	char text[512] = "";
	softgpu_log_t log = { text, sizeof text, 0 };
	softgpu_program_t *program;
	ck_assert_int_eq(link_texts((const char *const[]){ refused[_i].first, refused[_i].second, NULL }, false, &log, &program),
			 CUDA_ERROR_INVALID_SOURCE);
	for (int n = 0; n < 3 && refused[_i].says[n]; n++)
		ck_assert_msg(strstr(text, refused[_i].says[n]), "want '%s' in: %s", refused[_i].says[n], text);
	ck_assert_uint_eq(device_allocations(), 0);
}
END_TEST

START_TEST(what_is_declared_and_never_used_may_be_missing)
{
	uint64_t results[1] = { 1 };
	run_linked((const char *const[]){ DECLARES("f") ".extern .global .u32 v;\n" KERNEL("st.global.u64 [%l1], %l1;"),
					  DECLARES("g"), NULL }, false, results, 1);
	ck_assert_uint_ne(results[0], 1);
}
END_TEST

START_TEST(errors_in_code_name_the_unit)
{
	char text[512] = "";
	softgpu_log_t log = { text, sizeof text, 0 };
	softgpu_program_t *program;
	ck_assert_int_eq(link_texts((const char *const[]){ KERNEL(""), ".func f()\n{ tcgen05.wait::ld.sync.aligned; }\n", NULL },
				    false, &log, &program), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_msg(strstr(text, "b.ptx: ptx line 5"), "%s", text);
	text[log.used = 0] = '\0';
	ck_assert_int_eq(link_texts((const char *const[]){ KERNEL(""), "\n\n.func f(", NULL }, false, &log, &program),
			 CUDA_ERROR_INVALID_PTX);
	ck_assert_msg(strstr(text, "b.ptx: ptx line 6"), "%s", text);
}
END_TEST

START_TEST(a_check_reads_the_text_alone)
{
	const char text[] = HEAD ".extern .func f();\n" KERNEL("call.uni f;");
	char said[256] = "";
	softgpu_log_t log = { said, sizeof said, 0 };
	const softgpu_unit_t good = { "a.ptx", text, sizeof text - 1, false }, bad = { "a.ptx", text, 60, false };
	ck_assert_int_eq(softgpu_program_check(&good, &log), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_program_check(&bad, &log), CUDA_ERROR_INVALID_PTX);
	ck_assert_msg(strstr(said, "a.ptx: ptx line"), "%s", said);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx linking");
	tcase_add_test(cases, names_are_found_in_other_units);
	tcase_add_test(cases, local_names_stay_apart);
	tcase_add_test(cases, a_local_declaration_is_not_another_units_name);
	tcase_add_test(cases, initialisers_hold_addresses_of_other_units);
	tcase_add_test(cases, weak_and_common_definitions_give_way);
	tcase_add_test(cases, a_dropped_definition_leaves_no_memory_of_its_own);
	tcase_add_test(cases, shared_memory_is_one_for_all_units);
	tcase_add_test(cases, a_vector_may_end_behind_the_dynamic_shared_memory);
	tcase_add_test(cases, libraries_give_what_is_wanted);
	tcase_add_loop_test(cases, what_does_not_fit_is_refused, 0, sizeof refused / sizeof *refused);
	tcase_add_test(cases, what_is_declared_and_never_used_may_be_missing);
	tcase_add_test(cases, errors_in_code_name_the_unit);
	tcase_add_test(cases, a_check_reads_the_text_alone);
	return run_tests();
}
