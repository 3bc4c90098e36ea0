/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions, one for each server of the list: cuInit, the devices that the servers describe, further connections, fork. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"

#include "cuda_remote/door/door.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(server_list, "HEADRACE_SERVER", "", 0, 0, "the servers, host[:port][/gpu] or unix:path[/gpu], separated by commas; empty: this user's socket");

enum state { STATE_NEW, STATE_UP, STATE_FORKED };

static struct rc_process process;
static enum state state; /* atomic; STATE_UP is set once */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of each session. */
static rc_server_t servers[RC_SERVER_MAX];
static uint8_t tokens[RC_SERVER_MAX][RC_DOOR_TOKEN_BYTES];
/* The handles of the primary contexts of each session, which another cuInit uses again. */
static uint64_t primaries[RC_SERVER_MAX];

/* In a child of fork. The connections belong to the parent and share memory with it, so the child must not use them. */
static void after_fork(void)
{
	if (__atomic_load_n(&state, __ATOMIC_RELAXED) == STATE_UP)
		__atomic_store_n(&state, STATE_FORKED, __ATOMIC_RELAXED);
	pthread_mutex_init(&lock, NULL);
}

static __thread bool in_callback __attribute__((tls_model("initial-exec")));

void rc_callback_enter(bool inside)
{
	in_callback = inside;
}

CUresult rc_callback_check(void)
{
	return in_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

/* Acquire pairs with the release at the end of cuInit: a thread that reads STATE_UP sees all sessions. */
CUresult rc_process_get(struct rc_process **found)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_UP)
		return CUDA_ERROR_NOT_INITIALIZED;
	*found = &process;
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

_Static_assert(RC_CALLS <= RC_DOOR_CALLS_MAX, "call numbers");

/* Keeps the numbers that the server has for this build's calls, if they are others. */
static int note_calls(struct rc_session *session, const rc_door_welcome_t *welcome)
{
	free(session->call_number);
	session->call_number = NULL;
	if (!welcome->other_calls)
		return 0;
	session->call_number = malloc(sizeof welcome->call_number);
	if (!session->call_number)
		return -ENOMEM;
	memcpy(session->call_number, welcome->call_number, sizeof welcome->call_number);
	return 0;
}

/* Makes the handshake with the server (door.h) and connects. */
static CUresult visit(struct rc_session *session, enum rc_door_purpose purpose, struct rc_link **link)
{
	const rc_server_t *server = &servers[session->index];
	uint8_t *token = tokens[session->index];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN | HR_CHANNEL_SLEEPS;
	ch3_t *engine;
	hr_card_t card;
	int error = ch3_open(&attr, &engine, &card);
	if (error)
		return error_of_visit(error);
	rc_door_connect_t ask = { .server = *server, .purpose = purpose, .card = &card };
	memcpy(ask.token, token, sizeof ask.token);
	rc_door_welcome_t welcome;
	error = rc_door_connect(&ask, &welcome);
	if (error) {
		ch3_close(engine);
		return error_of_visit(error);
	}
	if (purpose == RC_DOOR_NEW) { /* later visits find the same, beside threads that read it */
		memcpy(token, welcome.token, sizeof welcome.token);
		session->local = welcome.local;
		session->encrypted = welcome.encrypted || welcome.encrypts;
	}
	if (purpose == RC_DOOR_NEW && note_calls(session, &welcome)) {
		close(welcome.fd);
		ch3_close(engine);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	char name[sizeof ((struct rc_link *)0)->server];
	rc_server_name(server, name, sizeof name);
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	connect.fd = welcome.fd;
	if (welcome.encrypted)
		connect.cipher = &welcome.cipher;
	CUresult result = rc_link_open(session, engine, &welcome.card, &connect, name, link);
	explicit_bzero(&welcome.cipher, sizeof welcome.cipher);
	return result;
}

CUresult rc_session_join(struct rc_session *session, struct rc_link **link)
{
	return visit(session, RC_DOOR_JOIN, link);
}

int rc_session_memory(struct rc_session *session)
{
	if (session->memory_opened)
		return session->memory < 0 ? -EOPNOTSUPP : 0;
	rc_door_connect_t ask = { .server = servers[session->index], .purpose = RC_DOOR_MEMORY };
	rc_door_welcome_t welcome;
	memcpy(ask.token, tokens[session->index], sizeof ask.token);
	int error = session->local ? rc_door_connect(&ask, &welcome) : -EOPNOTSUPP;
	session->memory_opened = true;
	session->memory = error ? -1 : welcome.fd;
	return error;
}

int rc_session_handle(const struct rc_session *session, int *fd)
{
	rc_door_connect_t ask = { .server = servers[session->index], .purpose = RC_DOOR_HANDLE };
	rc_door_welcome_t welcome;
	memcpy(ask.token, tokens[session->index], sizeof ask.token);
	int error = session->encrypted ? -EOPNOTSUPP : rc_door_connect(&ask, &welcome);
	if (!error)
		*fd = welcome.fd;
	return error;
}

static CUresult find_servers(void)
{
	const char *text = hr_setting_text(&server_list);
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
	process.sessions = (unsigned)n;
	return CUDA_SUCCESS;
}

/* True if CUDA_VISIBLE_DEVICES names the device of this number. *position: of the device in that list. */
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

/* Devices of two hosts may have equal PCI addresses, those of two software GPUs also equal UUIDs. A program identifies its
 * devices by them, so they must differ: changes the PCI domain and a byte of the UUID of the later device. */
static void make_unique(struct rc_device *device)
{
	for (int i = 0; i < process.devices; i++) {
		struct rc_device *other = &process.device[i];
		if (other->session == device->session)
			continue;
		if (!strncmp(other->wire.pci, device->wire.pci, sizeof device->wire.pci) && strlen(device->wire.pci) > 4) {
			char domain[5];
			snprintf(domain, sizeof domain, "%04x", 0x1000 + device->session->index);
			memcpy(device->wire.pci, domain, 4);
		}
		if (!memcmp(other->wire.uuid, device->wire.uuid, sizeof device->wire.uuid))
			device->wire.uuid[14] ^= (uint8_t)(0x40 + device->session->index);
	}
}

/* Adds the devices of a session to the process's list. before: number of devices of the servers before this one. */
static CUresult keep_devices(struct rc_session *session, const struct rc_wire_device *wire, uint32_t n, uint32_t before)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	uint32_t gpu = servers[session->index].gpu;
	struct rc_device *larger = realloc(process.device, ((size_t)process.devices + n) * sizeof *larger);
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	process.device = larger;
	for (uint32_t i = 0; i < n; i++) {
		/* A session that asked for one GPU is shown that GPU alone. With one server, CUDA_VISIBLE_DEVICES counts as
		 * the server does; with several, it counts in the list. */
		uint32_t number = gpu != RC_SERVER_ALL_GPUS && n == 1 ? gpu : i;
		int position = (int)(before + i);
		if ((gpu != RC_SERVER_ALL_GPUS && gpu != number) ||
		    !device_is_wanted(&wire[i], process.sessions == 1 ? (int)number : position, visible, &position))
			continue;
		struct rc_device *device = &process.device[process.devices];
		*device = (struct rc_device){ .wire = wire[i], .session = session, .ordinal = (int)i, .position = position,
					      .primary = session->primary + i };
		device->wire.name[sizeof wire->name - 1] = '\0';
		device->wire.pci[sizeof wire->pci - 1] = '\0';
		make_unique(device);
		keep_limits(device);
		process.devices++;
	}
	return CUDA_SUCCESS;
}

/* The list is complete: puts it into the order of CUDA_VISIBLE_DEVICES. */
static CUresult number_devices(void)
{
	if (!process.devices)
		return CUDA_ERROR_NO_DEVICE;
	qsort(process.device, (size_t)process.devices, sizeof *process.device, by_position);
	for (int i = 0; i < process.devices; i++) {
		CUresult result = rc_context_add_primary(i, process.device[i].primary);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

/* Asks a server for its devices. *before: increased by their number. */
static CUresult hello(struct rc_session *session, uint32_t *before)
{
	struct rc_link *link = session->first;
	struct {
		struct rc_wire_call head;
		struct rc_wire_greeting call;
	} message = { .call = { session->primary } };
	CUresult result = rc_link_call(link, RC_CALL_hello, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_wire_hello answer;
	if (link->reply_len < sizeof answer)
		return rc_link_broken(link, RC_CALL_hello);
	memcpy(&answer, link->reply, sizeof answer);
	if (!answer.devices || answer.devices > RC_DEVICES_MAX ||
	    link->reply_len != sizeof answer + answer.devices * sizeof(struct rc_wire_device))
		return rc_link_broken(link, RC_CALL_hello);
	struct rc_wire_device *devices = malloc(link->reply_len);
	if (!devices)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(devices, link->reply + sizeof answer, link->reply_len - sizeof answer);
	if (answer.driver_version < process.driver_version)
		process.driver_version = answer.driver_version;
	session->staging = answer.staging;
	session->pinned = answer.pinned;
	result = keep_devices(session, devices, answer.devices, *before);
	*before += answer.devices;
	free(devices);
	return result;
}

static CUresult open_session(unsigned index, uint32_t *before)
{
	struct rc_session *session = &process.session[index];
	*session = (struct rc_session){ .index = index };
	CUresult result = CUDA_SUCCESS;
	if (!primaries[index])
		result = rc_handle_row(RC_KIND_CONTEXT, session, RC_DEVICES_MAX, &primaries[index]);
	session->primary = primaries[index];
	if (result == CUDA_SUCCESS)
		result = visit(session, RC_DOOR_NEW, &session->first);
	return result == CUDA_SUCCESS ? hello(session, before) : result;
}

static CUresult set_up(void)
{
	uint32_t before = 0;
	process.driver_version = CUDA_VERSION;
	CUresult result = rc_peer_prepare();
	if (result == CUDA_SUCCESS)
		result = find_servers();
	for (unsigned i = 0; i < process.sessions && result == CUDA_SUCCESS; i++)
		result = open_session(i, &before);
	if (result == CUDA_SUCCESS)
		result = number_devices();
	if (result == CUDA_SUCCESS)
		return result;
	/* The sessions never existed: another cuInit may succeed. */
	for (unsigned i = 0; i < process.sessions; i++)
		if (process.session[i].first)
			rc_link_close(process.session[i].first);
	free(process.device);
	memset(&process, 0, sizeof process);
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
	struct rc_process *up;
	CUresult result = rc_process_get(&up);
	if (result != CUDA_SUCCESS)
		return result;
	if (device < 0 || device >= up->devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*found = &up->device[device];
	return CUDA_SUCCESS;
}
