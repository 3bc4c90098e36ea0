/* SPDX-License-Identifier: BSD-3-Clause */
/* The job: its ranks, the engine, and the order in which the units start and end. */
#include "adi/core/job.h"

#include "adi/collective/schedule.h"
#include "adi/comm/comm.h"
#include "adi/core/info_env.h"
#include "adi/message/request.h"
#include "adi/window/window.h"
#include "rdma_channel/base/setting.h"
#include "rdma_channel/card.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct adi_job adi_job = { .size = 1, .told_dead = -1 };

/* The engine asks for the card of a rank when this process opens the connection. */
static int find_card(void *context, uint32_t rank, hr_card_t *card)
{
	(void)context;
	return adi_launch_fetch((int)rank, card);
}

/* Adds all other ranks to the engine, as connections on demand: in a large job most pairs of ranks exchange no
 * messages. Their cards are fetched when they are needed. */
static int add_all(void)
{
	adi_job.peer = calloc((size_t)adi_job.size, sizeof *adi_job.peer);
	int error = adi_job.peer ? 0 : -ENOMEM;
	for (int i = 0; !error && i < adi_job.size; i++) {
		adi_job.peer[i].rank = i;
		if (i != adi_job.rank)
			error = ch3_add_number(adi_job.engine, (uint32_t)i, &adi_job.peer[i], &adi_job.peer[i].vc);
	}
	return error;
}

static int know_machine(const hr_card_t *card)
{
	struct hr_identity identity;
	int error = hr_card_decode(card, &identity);
	if (!error)
		adi_job.machine = (struct adi_machine){ identity.host.boot, identity.host.netns };
	return error;
}

static int start_engine(hr_card_t *card)
{
	/* A rank may compute for a long time between two MPI calls. Connections to it must not time out meanwhile. */
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_PATIENT;
	int error = ch3_open(&attr, &adi_job.engine, card);
	if (!error)
		error = ch3_number(adi_job.engine, (uint32_t)adi_job.rank, (uint32_t)adi_job.size, adi_job_build, find_card, NULL,
				   card);
	if (!error)
		error = know_machine(card);
	if (error)
		return error;
	adi_progress_start();
	error = adi_meet_prepare();
	if (!error)
		error = adi_messages_start();
	return error ? error : adi_windows_start();
}

/* Logs every setting that has an invalid number. Some are read only when they are needed; a wrong value would show late or
 * never. The default is valid also if it is a word, such as auto. */
static int check_settings(void)
{
	const struct hr_setting *const *all;
	size_t n = hr_setting_list(&all);
	int error = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t number;
		if (all[i]->max && strcmp(hr_setting_text(all[i]), all[i]->default_value) && hr_setting_u64(all[i], &number))
			error = -EINVAL;
	}
	return error;
}

/* Every failure ends the process, so nothing is undone. */
int adi_job_start(void)
{
	hr_card_t card;
	int error = adi_launch_init(&adi_job.rank, &adi_job.size, &adi_job.local_size);
	if (error)
		return adi_error_below(error, "the process manager");
	error = check_settings();
	if (error)
		return adi_error_below(error, "reading the settings");
	adi_job.oversubscribed = adi_job.local_size > sysconf(_SC_NPROCESSORS_ONLN);
	error = start_engine(&card);
	if (error)
		return adi_error_below(error, "opening the channel");
	error = add_all();
	if (error)
		return adi_error_below(error, "preparing connections to the other ranks");
	error = adi_launch_publish(&card);
	if (error == -ECONNRESET)
		return adi_error(MPI_ERR_PROC_ABORTED, "a rank has ended before all ranks were in MPI_Init");
	if (error)
		return adi_error_below(error, "publishing this rank's address to the other ranks");
	return adi_comms_start();
}

void adi_job_end(void)
{
	adi_error_on(NULL);
	adi_windows_end();
	ch3_close(adi_job.engine);
	adi_job.engine = NULL;
	adi_progress_end();
	adi_messages_end();
	adi_comms_end();
	adi_schedules_end();
	adi_attributes_end();
	adi_objects_end();
	free(adi_job.peer);
	adi_job.peer = NULL;
	adi_launch_finalize();
}
