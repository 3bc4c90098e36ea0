/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the process manager: PMIx, PMI-1 or PMI-2, from the variables that it has set. Without one the job is one process. */
#include "adi/core/launch.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

HR_SETTING(pmi_setting, "HEADRACE_PMI", "auto", 0, 0,
	   "mpi: protocol if PMI_FD is set: 1: PMI-1; 2: PMI-2; auto: 2 under Slurm, else 1");

static const struct launch_manager *manager;

static int choose_pmi(const struct launch_manager **pmi)
{
	const char *version = hr_setting_text(&pmi_setting);
	if (strcmp(version, "1") && strcmp(version, "2") && strcmp(version, "auto")) {
		hr_log(HR_LOG_ERROR, "%s=%s: invalid value; valid values: 1, 2, auto", pmi_setting.variable, version);
		return -EINVAL;
	}
	bool second = *version == '2' || (*version == 'a' && getenv("SLURM_JOB_ID") && getenv("PMI_JOBID"));
	*pmi = second ? &launch_pmi2 : &launch_pmi1;
	return 0;
}

int adi_launch_init(int *rank, int *size, int *local_size)
{
	const struct launch_manager *pmi;
	int error = choose_pmi(&pmi);
	if (error)
		return error;
	const struct launch_manager *candidates[] = { &launch_pmix, pmi };
	for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
		error = candidates[i] ? candidates[i]->init(rank, size, local_size) : -ENOENT;
		if (!error)
			manager = candidates[i];
		if (error != -ENOENT)
			return error;
	}
	*rank = 0;
	*size = *local_size = 1;
	return 0;
}

int adi_launch_publish(const hr_card_t *card)
{
	return manager ? manager->publish(card) : 0;
}

int adi_launch_fetch(int rank, hr_card_t *card)
{
	return manager ? manager->fetch(rank, card) : -ENOENT;
}

int adi_launch_meet_start(void)
{
	return manager ? manager->meet_start() : 1;
}

int adi_launch_meet_test(void)
{
	return manager ? manager->meet_test() : 1;
}

void adi_launch_abort(int code, const char *message)
{
	if (manager)
		manager->abort(code, message);
}

void adi_launch_finalize(void)
{
	if (manager)
		manager->finalize();
	manager = NULL;
}
