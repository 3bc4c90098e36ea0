/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapters of a channel: the devices and ports that HEADRACE_IB_DEVICE lists, each opened as a struct ib_device. A
 * connection uses one of them at each end. Its number, which one side chooses, selects the entry of both lists: entry
 * number mod length. So equal lists meet entry by entry, as separate networks of one node each require, and the
 * connections of a process are spread over its adapters. If those two ports cannot reach each other, or one is down,
 * the next pair is taken. Both sides calculate the same, from the cards and from the notes in the two hellos.
 */
#ifndef IB_ADAPTERS_H
#define IB_ADAPTERS_H

#include "ib/ib_device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IB_ADAPTERS_MAX = 8 };

/* Verbs' section of the card: the networks of the adapters, in the order of the list. Written by its owner, checked by
 * the peer. */
struct ib_card_section {
	uint8_t version; /* IB_WIRE_VERSION */
	uint8_t n;       /* number of entries, 1 to IB_ADAPTERS_MAX; the section ends after the last. An adapter that the
			  * owner cannot use has an entry of 0, so that the others keep their places */
	uint8_t reserved[6];
	struct ib_network network[IB_ADAPTERS_MAX];
};
_Static_assert(sizeof(struct ib_card_section) == 8 + 12 * IB_ADAPTERS_MAX, "wire format");
_Static_assert(sizeof(struct ib_card_section) <= HR_SECTION_MAX, "fits the transport's contract");

/* The note in a hello. Written by the sender, read by both sides. */
struct ib_note {
	uint8_t usable;      /* set of 1 << entry: the adapters whose ports are up */
	uint8_t reserved1;
	uint16_t number;     /* of the connection; that of the side with more usable adapters counts */
	uint8_t reserved2[4];
};
_Static_assert(sizeof(struct ib_note) == HR_NOTE_BYTES, "wire format");

struct ib_adapters {
	int events; /* readable if a device has an event: its own descriptor, or an epoll set of several */
	unsigned n;
	struct ib_device *device[IB_ADAPTERS_MAX]; /* NULL: cannot be used */
	struct ib_device *first; /* of those that can be used */
};

/* Opens what HEADRACE_IB_DEVICE lists. Entries that cannot be used are logged. -ENODEV: none can be used.
 * -EINVAL: the list, or another setting, is invalid. */
int ib_adapters_open(const struct hr_channel_env *env, struct ib_adapters **adapters);
void ib_adapters_close(struct ib_adapters *adapters);

/* Writes the section of the card. Returns its size. */
size_t ib_adapters_describe(const struct ib_adapters *adapters, uint8_t section[HR_SECTION_MAX]);

/* Returns whether a usable adapter of this side reaches an adapter of that section. */
bool ib_adapters_reach(const struct ib_adapters *adapters, const uint8_t *section, size_t len);

/* Writes the note of a new connection to that process. */
void ib_adapters_note(const struct ib_adapters *adapters, uint64_t peer, uint8_t note[HR_NOTE_BYTES]);

/* Returns this side's adapter for a connection; NULL: no two usable adapters reach each other. */
struct ib_device *ib_adapters_choose(const struct ib_adapters *adapters, const struct hr_agreement *agreement);

#endif
