/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the list of adapters, opens them, and chooses the adapter of each connection. */
#include "config.h"

#include "ib/ib_adapters.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = IBV_SYSFS_NAME_MAX };

HR_SETTING(device_setting, "HEADRACE_IB_DEVICE", "auto", 0, 0,
	   "verbs: RDMA devices, or ports of them, as mlx5_0,mlx5_1:2 (at most 8), or auto (one device)");

/* ---- the list ---- */

struct entry {
	char name[NAME_MAX_BYTES];
	struct ib_wanted wanted; /* its device is name */
};

static int refuse(const char *what)
{
	hr_log(HR_LOG_ERROR, "HEADRACE_IB_DEVICE=%s: %s; valid values: auto, or at most %d names of RDMA devices, each "
	       "with or without a port, such as mlx5_0,mlx5_1:2", hr_setting_text(&device_setting), what, IB_ADAPTERS_MAX);
	return -EINVAL;
}

static int parse_port(const char *text, size_t len, int *port)
{
	char digits[4] = { 0 };
	if (len < 1 || len >= sizeof digits || strspn(text, "0123456789") < len)
		return refuse("a port is not a number from 1 to 255");
	memcpy(digits, text, len);
	*port = atoi(digits);
	return *port >= 1 && *port <= 255 ? 0 : refuse("a port is not a number from 1 to 255");
}

static int parse_entry(const char *text, size_t len, struct entry *entry)
{
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon ? (size_t)(colon - text) : len;
	*entry = (struct entry){ .wanted = { .port = -1 } };
	if (name_len == 0)
		return refuse("a name is empty");
	if (name_len >= sizeof entry->name)
		return refuse("a name is too long");
	memcpy(entry->name, text, name_len);
	entry->wanted.device = entry->name;
	return colon ? parse_port(colon + 1, len - name_len - 1, &entry->wanted.port) : 0;
}

/* Returns the number of entries, or -EINVAL. */
static int parse_list(const char *text, struct entry list[IB_ADAPTERS_MAX])
{
	int n = 0;
	for (const char *end;; text = end + 1) {
		end = strchrnul(text, ',');
		if (n == IB_ADAPTERS_MAX)
			return refuse("too many names");
		int error = parse_entry(text, (size_t)(end - text), &list[n]);
		if (error)
			return error;
		for (int i = 0; i < n; i++) {
			if (!strcmp(list[i].name, list[n].name) && list[i].wanted.port == list[n].wanted.port)
				return refuse("a port is listed twice");
			list[i].wanted.device = list[i].name;
		}
		n++;
		if (!*end)
			return n;
	}
}

/* ---- opening ---- */

static int open_list(const struct hr_channel_env *env, struct ib_adapters *adapters)
{
	const char *text = hr_setting_text(&device_setting);
	static const struct ib_wanted any = { NULL, -1 };
	if (!strcmp(text, "auto")) {
		adapters->n = 1;
		return ib_device_open(env, &any, &adapters->device[0]);
	}
	struct entry list[IB_ADAPTERS_MAX];
	int n = parse_list(text, list);
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		int error = ib_device_open(env, &list[i].wanted, &adapters->device[adapters->n++]);
		if (error && error != -ENODEV)
			return error;
	}
	return 0;
}

/* Several devices: the channel watches one descriptor, edge-triggered, so an epoll set stands for all of them. */
static int open_events(struct ib_adapters *adapters)
{
	if (adapters->n == 1) {
		adapters->events = adapters->device[0]->verbs->async_fd;
		return 0;
	}
	adapters->events = epoll_create1(EPOLL_CLOEXEC);
	int error = adapters->events < 0 ? -errno : 0;
	for (unsigned i = 0; i < adapters->n && !error; i++) {
		if (!adapters->device[i])
			continue;
		struct epoll_event event = { .events = EPOLLIN };
		if (epoll_ctl(adapters->events, EPOLL_CTL_ADD, adapters->device[i]->verbs->async_fd, &event) < 0)
			error = -errno;
	}
	if (error)
		hr_log(HR_LOG_ERROR, "verbs: cannot watch the events of %u devices: %s", adapters->n, strerror(-error));
	return error;
}

int ib_adapters_open(const struct hr_channel_env *env, struct ib_adapters **adapters)
{
	struct ib_adapters *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	made->events = -1;
	int error = open_list(env, made);
	for (unsigned i = made->n; i > 0; i--)
		if (made->device[i - 1])
			made->first = made->device[i - 1];
	if (!error)
		error = made->first ? open_events(made) : -ENODEV;
	if (error) {
		ib_adapters_close(made);
		return error;
	}
	*adapters = made;
	return 0;
}

void ib_adapters_close(struct ib_adapters *adapters)
{
	if (adapters->n > 1 && adapters->events >= 0)
		close(adapters->events);
	for (unsigned i = 0; i < adapters->n; i++)
		ib_device_close(adapters->device[i]);
	free(adapters);
}

/* ---- the card ---- */

size_t ib_adapters_describe(const struct ib_adapters *adapters, uint8_t section[HR_SECTION_MAX])
{
	struct ib_card_section made = { .version = IB_WIRE_VERSION, .n = (uint8_t)adapters->n };
	for (unsigned i = 0; i < adapters->n; i++)
		if (adapters->device[i])
			made.network[i] = ib_network_of(&adapters->device[i]->address);
	size_t len = offsetof(struct ib_card_section, network) + adapters->n * sizeof made.network[0];
	memcpy(section, &made, len);
	return len;
}

/* Decodes and checks a peer's section. */
static bool take_section(const uint8_t *bytes, size_t len, struct ib_card_section *section)
{
	size_t front = offsetof(struct ib_card_section, network);
	if (len < front || len > sizeof *section)
		return false;
	memcpy(section, bytes, len);
	return section->version == IB_WIRE_VERSION && section->n >= 1 && section->n <= IB_ADAPTERS_MAX &&
	       len == front + section->n * sizeof section->network[0];
}

/* Does not look at the present state of the port: that must not change a choice that both sides make from the notes. */
static bool pair_reaches(const struct ib_adapters *adapters, unsigned i, const struct ib_network *peer)
{
	const struct ib_device *device = adapters->device[i];
	if (!device || peer->link == 0)
		return false;
	struct ib_network own = ib_network_of(&device->address);
	return ib_networks_meet(&own, peer);
}

bool ib_adapters_reach(const struct ib_adapters *adapters, const uint8_t *bytes, size_t len)
{
	struct ib_card_section peer;
	if (!take_section(bytes, len, &peer))
		return false;
	for (unsigned i = 0; i < adapters->n; i++)
		for (unsigned j = 0; j < peer.n && adapters->device[i] && !adapters->device[i]->error; j++)
			if (pair_reaches(adapters, i, &peer.network[j]))
				return true;
	return false;
}

/* ---- the choice ---- */

/* Numbers the connections of this process to each peer process, whichever channels they belong to: a client of remote
 * CUDA has a channel for each thread. The first number differs between peers and processes, because a server has a process
 * for each client. Peers may share a counter. */
static uint16_t next_number(uint64_t peer)
{
	static unsigned numbers[256]; /* atomic: two threads may use two channels */
	unsigned count = __atomic_fetch_add(&numbers[peer % 256], 1, __ATOMIC_RELAXED);
	return (uint16_t)((unsigned)getpid() + (unsigned)(peer >> 8) + count);
}

void ib_adapters_note(const struct ib_adapters *adapters, uint64_t peer, uint8_t bytes[HR_NOTE_BYTES])
{
	struct ib_note note = { .number = htole16(next_number(peer)) };
	for (unsigned i = 0; i < adapters->n; i++)
		if (adapters->device[i] && !adapters->device[i]->error)
			note.usable |= (uint8_t)(1u << i);
	memcpy(bytes, &note, sizeof note);
}

/* The two sides of a choice: [0] is the side that leads. */
struct choice {
	unsigned n[2];
	uint8_t usable[2];
	unsigned number;
};

static struct choice make_choice(const struct hr_agreement *agreement, unsigned own_n, unsigned peer_n)
{
	struct ib_note own, peer;
	memcpy(&own, agreement->own, sizeof own);
	memcpy(&peer, agreement->peer, sizeof peer);
	bool leads = agreement->leads;
	int own_up = __builtin_popcount(own.usable), peer_up = __builtin_popcount(peer.usable);
	bool own_counts = own_up != peer_up ? own_up > peer_up : leads;
	return (struct choice){
		.n = { leads ? own_n : peer_n, leads ? peer_n : own_n },
		.usable = { leads ? own.usable : peer.usable, leads ? peer.usable : own.usable },
		.number = le16toh(own_counts ? own.number : peer.number),
	};
}

/* Tries the pairs of entries in an order that is the same on both sides: first those that belong together, from the
 * connection's number on, then the others. */
struct ib_device *ib_adapters_choose(const struct ib_adapters *adapters, const struct hr_agreement *agreement)
{
	struct ib_card_section peer;
	if (!take_section(agreement->section, agreement->section_len, &peer))
		return NULL;
	struct choice choice = make_choice(agreement, adapters->n, peer.n);
	unsigned longer = choice.n[0] > choice.n[1] ? choice.n[0] : choice.n[1];
	for (unsigned shift = 0; shift < choice.n[1]; shift++) {
		for (unsigned step = 0; step < longer; step++) {
			unsigned first = (choice.number + step) % choice.n[0];
			unsigned second = (choice.number + step + shift) % choice.n[1];
			unsigned own = agreement->leads ? first : second, other = agreement->leads ? second : first;
			if (choice.usable[0] >> first & 1 && choice.usable[1] >> second & 1 &&
			    pair_reaches(adapters, own, &peer.network[other]))
				return adapters->device[own];
		}
	}
	return NULL;
}
