/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a device: the sessions that its server reports to this user and whose clients are on this host. A
 * local software GPU belongs to its process, and other processes are not known.
 */
#include "cuda_remote/nvml/internal.h"

#include "cuda_remote/door/door.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct nvml_device *handle_t;

/* The report of the server that has a device of the list, the device's index there, and the server's number of GPUs. */
struct source {
	rc_door_report_t report;
	rc_server_t servers[RC_SERVER_MAX];
	uint32_t gpu, gpus;
};

static int find_source(uint32_t index, struct source *source)
{
	const char *list = getenv("HEADRACE_SERVER");
	size_t n;
	uint32_t before = 0;
	if (!list || !*list)
		return NVML_NOT_SUPPORTED;
	if (rc_server_parse(list, source->servers, RC_SERVER_MAX, &n))
		return NVML_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		rc_door_connect_t ask = { .server = source->servers[i] };
		rc_door_welcome_t welcome;
		if (rc_door_ask_report(&ask, &welcome, &source->report))
			return NVML_GPU_IS_LOST;
		uint32_t one = ask.server.gpu, count = one == RC_SERVER_ALL_GPUS ? welcome.gpus : 1;
		if (index - before < count) {
			source->gpu = one == RC_SERVER_ALL_GPUS ? index - before : one;
			source->gpus = welcome.gpus;
			return NVML_SUCCESS;
		}
		before += count;
	}
	return NVML_NOT_FOUND;
}

/* A session's memory is that of all its GPUs, so with several of them that of this device is not known. */
static bool take_session(const struct source *source, const rc_door_session_t *session, struct nvml_process *process)
{
	unsigned pid;
	bool all = session->gpu == RC_SERVER_ALL_GPUS;
	if ((!all && session->gpu != source->gpu) || sscanf(session->client, "unix:pid %u", &pid) != 1)
		return false;
	*process = (struct nvml_process){ pid, all && source->gpus > 1 ? NVML_VALUE_UNKNOWN : session->memory, UINT32_MAX,
					  UINT32_MAX };
	return true;
}

/* The caller frees *list. */
static int list_processes(const struct nvml_device *device, struct nvml_process **list, unsigned *count)
{
	struct source *source = malloc(sizeof *source);
	struct nvml_process *found = calloc(RC_DOOR_SESSIONS_MAX, sizeof *found);
	int error = source && found ? find_source(device->index, source) : NVML_MEMORY;
	unsigned n = 0;
	for (uint32_t i = 0; !error && i < source->report.count; i++)
		n += take_session(source, &source->report.session[i], &found[n]);
	free(source);
	if (error) {
		free(found);
		return error;
	}
	*list = found;
	*count = n;
	return NVML_SUCCESS;
}

/* *count: room in the caller's array, then the number of processes. */
static int give_processes(handle_t device, unsigned *count, void *infos, size_t size)
{
	struct nvml_process *list;
	unsigned n;
	int error = nvml_check(device, count);
	if (!error && *count && !infos)
		error = NVML_INVALID_ARGUMENT;
	if (!error)
		error = list_processes(device, &list, &n);
	if (error)
		return error;
	if (n > *count)
		error = NVML_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < n && !error; i++) {
		if (size == sizeof *list)
			((struct nvml_process *)infos)[i] = list[i];
		else
			((struct nvml_process_1 *)infos)[i] = (struct nvml_process_1){ list[i].pid, list[i].memory };
	}
	*count = n;
	free(list);
	return error;
}

NVML_EXPORT int nvmlDeviceGetComputeRunningProcesses(handle_t device, unsigned *count, struct nvml_process_1 *infos);
int nvmlDeviceGetComputeRunningProcesses(handle_t device, unsigned *count, struct nvml_process_1 *infos)
{
	return give_processes(device, count, infos, sizeof *infos);
}

NVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(handle_t device, unsigned *count, struct nvml_process *infos);
int nvmlDeviceGetComputeRunningProcesses_v2(handle_t device, unsigned *count, struct nvml_process *infos)
{
	return give_processes(device, count, infos, sizeof *infos);
}

NVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(handle_t device, unsigned *count, struct nvml_process *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(handle_t device, unsigned *count, struct nvml_process *infos)
{
	return give_processes(device, count, infos, sizeof *infos);
}

/* Sessions draw nothing. Where the sessions are not known, neither is the number of processes that draw. */
static int give_no_process(handle_t device, unsigned *count)
{
	struct nvml_process *list;
	unsigned n;
	int error = nvml_check(device, count);
	if (!error)
		error = list_processes(device, &list, &n);
	if (error)
		return error;
	free(list);
	*count = 0;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses(handle_t device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses(handle_t device, unsigned *count, void *infos)
{
	(void)infos;
	return give_no_process(device, count);
}

NVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(handle_t device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v2(handle_t device, unsigned *count, void *infos)
{
	return nvmlDeviceGetGraphicsRunningProcesses(device, count, infos);
}

NVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(handle_t device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(handle_t device, unsigned *count, void *infos)
{
	return nvmlDeviceGetGraphicsRunningProcesses(device, count, infos);
}

NVML_EXPORT int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
	char path[40], text[4096];
	int error = nvml_ready();
	if (error || !name || !size)
		return error ? error : NVML_INVALID_ARGUMENT;
	snprintf(path, sizeof path, "/proc/%u/exe", pid);
	ssize_t n = readlink(path, text, sizeof text - 1);
	if (n < 0)
		return access(path, F_OK) ? NVML_NOT_FOUND : NVML_NO_PERMISSION;
	text[n] = 0;
	return nvml_give_text(text, name, size);
}
