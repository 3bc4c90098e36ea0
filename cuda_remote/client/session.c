/* SPDX-License-Identifier: BSD-3-Clause */
/* The session with the server: cuInit, the devices that the server describes, further connections, fork. */
#include "cuda_remote/client/client.h"

#include "cuda_remote/door/door.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(server_list, "HEADRACE_SERVER", "", 0, 0, "the server, host[:port][/gpu] or unix:path[/gpu]; empty: this user's socket");

enum state { STATE_NEW, STATE_UP, STATE_FORKED };

static struct rc_session session;
static enum state state; /* atomic; STATE_UP is set once */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rc_server_t server;
static uint8_t token[RC_DOOR_TOKEN_BYTES];

/* In a child of fork. The connections belong to the parent and share memory with it, so the child must not use them. */
static void after_fork(void)
{
	if (__atomic_load_n(&state, __ATOMIC_RELAXED) == STATE_UP)
		__atomic_store_n(&state, STATE_FORKED, __ATOMIC_RELAXED);
	pthread_mutex_init(&lock, NULL);
}

/* Acquire pairs with the release at the end of cuInit: a thread that reads STATE_UP sees the whole session. */
CUresult rc_session_get(struct rc_session **found)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_UP)
		return CUDA_ERROR_NOT_INITIALIZED;
	*found = &session;
	return CUDA_SUCCESS;
}

static CUresult error_of_visit(int error)
{
	switch (error) {
	case -ENODEV: return CUDA_ERROR_NO_DEVICE;
	case -EACCES: case -EKEYREJECTED: case -EOPNOTSUPP: return CUDA_ERROR_NOT_PERMITTED;
	case -EPROTONOSUPPORT: return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case -ENOMEM: return CUDA_ERROR_OUT_OF_MEMORY;
	case -EINVAL: return CUDA_ERROR_INVALID_VALUE;
	default: return RC_LOST;
	}
}

/* Makes the handshake with the server (door.h) and connects. */
static CUresult visit(enum rc_door_purpose purpose, struct rc_link **link)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	ch3_t *engine;
	hr_card_t card;
	int error = ch3_open(&attr, &engine, &card);
	if (error)
		return error_of_visit(error);
	rc_door_connect_t ask = { .server = server, .purpose = purpose, .card = &card };
	memcpy(ask.token, token, sizeof token);
	rc_door_welcome_t welcome;
	error = rc_door_connect(&ask, &welcome);
	if (error) {
		ch3_close(engine);
		return error_of_visit(error);
	}
	if (purpose == RC_DOOR_NEW)
		memcpy(token, welcome.token, sizeof token);
	char name[sizeof ((struct rc_link *)0)->server];
	rc_server_name(&server, name, sizeof name);
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	connect.fd = welcome.fd;
	if (welcome.encrypted)
		connect.cipher = &welcome.cipher;
	CUresult result = rc_link_open(&session, engine, &welcome.card, &connect, name, link);
	explicit_bzero(&welcome.cipher, sizeof welcome.cipher);
	return result;
}

CUresult rc_session_join(struct rc_session *of, struct rc_link **link)
{
	(void)of;
	return visit(RC_DOOR_JOIN, link);
}

static CUresult find_server(void)
{
	const char *text = hr_setting_text(&server_list);
	rc_server_t servers[RC_SERVER_MAX];
	size_t n = 1;
	if (*text) {
		if (rc_server_parse(text, servers, RC_SERVER_MAX, &n))
			return CUDA_ERROR_INVALID_VALUE;
	} else {
		memset(servers, 0, sizeof servers[0]);
		servers[0].gpu = RC_SERVER_ALL_GPUS;
		if (rc_server_default_socket(servers[0].path, sizeof servers[0].path))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (n > 1) {
		hr_log(HR_LOG_ERROR, "HEADRACE_SERVER=%s: GPUs of more than one server in one program are not supported", text);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	server = servers[0];
	return CUDA_SUCCESS;
}

/* True if CUDA_VISIBLE_DEVICES names the server's device of this number. *position: of the device in that list. */
static bool device_is_wanted(const struct rc_wire_device *device, int ordinal, const char *visible, int *position)
{
	if (!visible)
		return true;
	*position = 0;
	char uuid[5 + 33] = "GPU-";
	for (int i = 0, at = 4; i < 16; i++, at += 2)
		snprintf(uuid + at, sizeof uuid - (size_t)at, "%02x", device->uuid[i]);
	for (const char *item = visible; *item; (*position)++) {
		char *end;
		long number = strtol(item, &end, 10);
		if (end != item && (*end == ',' || !*end)) {
			if (number < 0)
				return false; /* as CUDA does: entries after an invalid one are ignored */
			if (number == ordinal)
				return true;
		} else if (strncmp(item, "GPU-", 4)) {
			return false;
		} else {
			/* A UUID or the beginning of one; dashes are ignored. */
			int at = 4;
			bool equal = true;
			const char *c = item + 4;
			for (; *c && *c != ','; c++)
				if (*c != '-' && at < 36 && (*c | 0x20) != uuid[at++])
					equal = false;
			if (equal)
				return true;
			end = (char *)(uintptr_t)c;
		}
		item = *end ? end + 1 : end;
	}
	return false;
}

static int by_position(const void *a, const void *b)
{
	const struct rc_device *left = a, *right = b;
	return left->position - right->position;
}

static uint32_t limit(const struct rc_device *device, int attribute)
{
	return (uint32_t)rc_device_attribute(device, (CUdevice_attribute)attribute);
}

static void keep_limits(struct rc_device *device)
{
	for (int i = 0; i < 3; i++) {
		device->max_grid[i] = limit(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
		device->max_block[i] = limit(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
	}
	device->max_threads = limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	device->max_shared = limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	device->max_shared_optin = limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

static CUresult keep_devices(const struct rc_wire_device *wire, uint32_t n, uint64_t primary)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	session.device = calloc(n, sizeof *session.device);
	if (!session.device)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		/* A session that asked for one GPU is shown that GPU alone. */
		uint32_t number = server.gpu != RC_SERVER_ALL_GPUS && n == 1 ? server.gpu : i;
		int position = (int)i;
		if ((server.gpu != RC_SERVER_ALL_GPUS && server.gpu != number) ||
		    !device_is_wanted(&wire[i], (int)number, visible, &position))
			continue;
		struct rc_device *device = &session.device[session.devices++];
		device->wire = wire[i];
		device->wire.name[sizeof wire->name - 1] = '\0';
		device->wire.pci[sizeof wire->pci - 1] = '\0';
		device->ordinal = (int)i;
		device->primary = primary + i;
		device->position = position;
		keep_limits(device);
	}
	qsort(session.device, (size_t)session.devices, sizeof *session.device, by_position);
	for (int i = 0; i < session.devices; i++) {
		CUresult result = rc_context_add_primary(i, session.device[i].primary);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return session.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static CUresult hello(struct rc_link *link)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_greeting call;
	} message = { .call = { 0 } };
	CUresult result = rc_handle_row(RC_KIND_CONTEXT, RC_DEVICES_MAX, &message.call.primary);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_hello, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_wire_hello answer;
	if (link->reply_len < sizeof answer)
		return rc_link_broken(link, RC_CALL_hello);
	memcpy(&answer, link->reply, sizeof answer);
	if (answer.devices > RC_DEVICES_MAX ||
	    link->reply_len != sizeof answer + answer.devices * sizeof(struct rc_wire_device))
		return rc_link_broken(link, RC_CALL_hello);
	struct rc_wire_device *devices = malloc(link->reply_len);
	if (!devices)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(devices, link->reply + sizeof answer, link->reply_len - sizeof answer);
	session.driver_version = answer.driver_version < CUDA_VERSION ? answer.driver_version : CUDA_VERSION;
	session.staging = answer.staging;
	result = keep_devices(devices, answer.devices, message.call.primary);
	free(devices);
	return result;
}

static CUresult set_up(void)
{
	CUresult result = find_server();
	if (result != CUDA_SUCCESS)
		return result;
	result = visit(RC_DOOR_NEW, &session.first);
	if (result != CUDA_SUCCESS) {
		/* The session never existed: another cuInit may succeed. */
		__atomic_store_n(&session.lost, false, __ATOMIC_RELAXED);
		return result;
	}
	result = hello(session.first);
	if (result != CUDA_SUCCESS) {
		rc_link_close(session.first);
		free(session.device);
		memset(&session, 0, sizeof session);
	}
	return result;
}

CUresult cuInit(unsigned flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	CUresult result = CUDA_SUCCESS;
	static bool watching;
	if (!watching)
		watching = !pthread_atfork(NULL, NULL, after_fork);
	if (state == STATE_FORKED)
		result = CUDA_ERROR_NOT_INITIALIZED;
	else if (state == STATE_NEW)
		result = set_up();
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&state, STATE_UP, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult rc_device_get(CUdevice device, struct rc_device **found)
{
	struct rc_session *up;
	CUresult result = rc_session_get(&up);
	if (result != CUDA_SUCCESS)
		return result;
	if (device < 0 || device >= up->devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*found = &up->device[device];
	return CUDA_SUCCESS;
}
