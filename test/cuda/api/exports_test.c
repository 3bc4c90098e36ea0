/* SPDX-License-Identifier: BSD-3-Clause */
/* What a libcuda.so.1 exports before anything is implemented, and how cuGetProcAddress resolves names by version. */
#include "cuda_remote/api/exports.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static CUdriverProcAddressQueryResult status;

static void *ask(const char *name, int version, cuuint64_t flags)
{
	void *symbol = &status;
	ck_assert_int_eq(cuGetProcAddress_v2(name, &symbol, version, flags, &status), CUDA_SUCCESS);
	return symbol;
}

START_TEST(a_name_resolves_to_the_newest_symbol_not_newer_than_asked)
{
	ck_assert_ptr_eq(ask("cuCtxGetDevice", 2000, 0), (void *)cuCtxGetDevice);
	ck_assert_ptr_eq(ask("cuCtxGetDevice", 12090, 0), (void *)cuCtxGetDevice);
	ck_assert_ptr_eq(ask("cuCtxGetDevice", 13000, 0), (void *)cuCtxGetDevice_v2);
	ck_assert_ptr_eq(ask("cuStreamGetCaptureInfo", 10010, 0), (void *)cuStreamGetCaptureInfo);
	ck_assert_ptr_eq(ask("cuStreamGetCaptureInfo", 12000, 0), (void *)cuStreamGetCaptureInfo_v2);
	ck_assert_ptr_eq(ask("cuStreamGetCaptureInfo", 12030, 0), (void *)cuStreamGetCaptureInfo_v3);
	ck_assert_ptr_eq(ask("cuMemAlloc", 13000, 0), (void *)cuMemAlloc_v2);
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
}
END_TEST

START_TEST(per_thread_symbols_are_given_where_they_exist)
{
	const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	ck_assert_ptr_eq(ask("cuMemcpyHtoD", 13000, 0), (void *)cuMemcpyHtoD_v2);
	ck_assert_ptr_eq(ask("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), (void *)cuMemcpyHtoD_v2);
	ck_assert_ptr_eq(ask("cuMemcpyHtoD", 13000, per_thread), (void *)cuMemcpyHtoD_v2_ptds);
	ck_assert_ptr_eq(ask("cuMemcpyHtoD", 6000, per_thread), (void *)cuMemcpyHtoD_v2);
	ck_assert_ptr_eq(ask("cuMemAlloc", 13000, per_thread), (void *)cuMemAlloc_v2);
	ck_assert_ptr_eq(ask("cuLaunchKernel", 13000, per_thread), (void *)cuLaunchKernel_ptsz);
}
END_TEST

START_TEST(a_missing_symbol_is_null_with_its_reason)
{
	ck_assert_ptr_null(ask("cuNoSuchFunction", 13000, 0));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	ck_assert_ptr_null(ask("", 13000, 0));
	ck_assert_ptr_null(ask("zz", 13000, 0));
	ck_assert_ptr_null(ask("cuMemAllocAsync", 11010, 0));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	void *symbol;
	ck_assert_int_eq(cuGetProcAddress("cuNoSuchFunction", &symbol, 13000, 0), CUDA_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	void *symbol;
	ck_assert_int_eq(cuGetProcAddress_v2(NULL, &symbol, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cuGetProcAddress_v2("cuInit", &symbol, CUDA_VERSION + 10, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cuGetProcAddress_v2("cuInit", &symbol, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cuGetProcAddress_v2("cuInit", &symbol, 13000, 8, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(what_is_not_there_says_so)
{
	CUdeviceptr pointer;
	ck_assert_int_eq(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_uint_gt(rc_exports_count, 600);
	for (size_t i = 0; i < rc_exports_entries_count; i++)
		ck_assert_ptr_nonnull((void *)rc_exports_entries[i].symbol);
}
END_TEST

START_TEST(errors_have_names_and_texts)
{
	const char *text;
	ck_assert_int_eq(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
	ck_assert_str_eq(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	ck_assert_int_eq(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
	ck_assert_str_eq(text, "invalid argument");
	ck_assert_int_eq(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	ck_assert_ptr_null(text);
	for (size_t i = 0; i < rc_exports_errors_count; i++) {
		ck_assert_int_eq(cuGetErrorString(rc_exports_errors[i].code, &text), CUDA_SUCCESS);
		ck_assert_uint_gt(strlen(text), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exports");
	TCase *tests = tcase_create("exports");
	tcase_set_timeout(tests, 300);
	suite_add_tcase(suite, tests);
	tcase_add_test(tests, a_name_resolves_to_the_newest_symbol_not_newer_than_asked);
	tcase_add_test(tests, per_thread_symbols_are_given_where_they_exist);
	tcase_add_test(tests, a_missing_symbol_is_null_with_its_reason);
	tcase_add_test(tests, bad_arguments_are_refused);
	tcase_add_test(tests, what_is_not_there_says_so);
	tcase_add_test(tests, errors_have_names_and_texts);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
