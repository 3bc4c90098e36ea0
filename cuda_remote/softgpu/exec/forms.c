/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of the tables in ops/ by mnemonic, and which build of their handlers runs. */
#include "cuda_remote/softgpu/exec/insn.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <stdlib.h>
#include <string.h>

HR_SETTING(isa_setting, "HEADRACE_SOFTGPU_ISA", "auto", 0, 0,
	   "vector instructions of the software GPU: auto, avx512, avx2 or baseline");

static const struct op_form forms[] = {
#include "cuda_remote/softgpu/exec/instructions/forms.h"
};

static int compare(const void *key, const void *form)
{
	return strcmp(key, ((const struct op_form *)form)->mnemonic);
}

const struct op_form *op_find(const char *mnemonic)
{
	return bsearch(mnemonic, forms, sizeof forms / sizeof *forms, sizeof *forms, compare);
}

#ifdef SOFTGPU_X86_64
static bool runs_here(const struct lane_ops *ops)
{
	__builtin_cpu_init();
	if (ops == &lane_ops_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	if (ops == &lane_ops_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		       __builtin_cpu_supports("bmi2");
	return true;
}

static const struct lane_ops *const builds[] = { &lane_ops_avx512, &lane_ops_avx2, &lane_ops_baseline };
#else
static bool runs_here(const struct lane_ops *ops)
{
	(void)ops;
	return true;
}

static const struct lane_ops *const builds[] = { &lane_ops_baseline };
#endif

const struct lane_ops *lane_ops_choose(void)
{
	const char *wanted = hr_setting_text(&isa_setting);
	for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
		if ((!strcmp(wanted, builds[i]->isa) || !strcmp(wanted, "auto")) && runs_here(builds[i]))
			return builds[i];
	hr_log_once(HR_LOG_ERROR,
		    "softgpu: HEADRACE_SOFTGPU_ISA=%s: not available in this build or on this CPU; using "
		    "baseline", wanted);
	return &lane_ops_baseline;
}
