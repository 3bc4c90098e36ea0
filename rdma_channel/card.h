/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card of a channel: what a peer needs to connect to the channel. A fixed part, then addresses, then one section
 * for each transport, and one for the label if there is one. Integers are little-endian. A check sum detects accidental
 * damage. It does not detect forgery: a card comes over a path that the receiver trusts.
 */
#ifndef HR_CARD_H
#define HR_CARD_H

#include "rdma_channel/host.h"
#include "rdma_channel/transport.h"
#include "rdma_channel/wireup.h"

#define HR_SECTIONS_MAX 4
#define HR_UNIX_NAME_MAX 8

enum {
	HR_CARD_VERSION = 2,
	HR_CARD_LISTENS = 1u << 0, /* in hr_card_wire.flags: peers may connect */
};

/* The fixed part. Written by the channel that the card describes, read by its peers. */
struct hr_card_wire {
	uint8_t magic[4];                     /* "HRCD" */
	uint32_t check;                       /* CRC-32 of everything after this field */
	uint8_t version;                      /* HR_CARD_VERSION */
	uint8_t flags;                        /* HR_CARD_LISTENS */
	uint8_t n_addresses;                  /* after the fixed part; each a length (4 or 16), then the bytes */
	uint8_t n_sections;                   /* after the addresses; each a transport's bit, a length, the bytes */
	uint8_t uid[HR_UID_BYTES];            /* random; a process that knows it may connect */
	uint64_t boot, netns;                 /* struct hr_host */
	uint32_t pid;
	uint16_t port;                        /* TCP port; 0: none */
	uint8_t unix_len;                     /* bytes of unix_name; 0: none */
	uint8_t zero;
	uint8_t unix_name[HR_UNIX_NAME_MAX];  /* abstract Unix socket name without its leading zero byte */
	char host[HR_HOSTNAME_MAX + 1];       /* for messages; ends with a zero byte */
};
_Static_assert(sizeof(struct hr_card_wire) == 88, "wire format");

struct hr_section {
	uint32_t transport; /* one HR_TRANSPORT_* */
	uint8_t len;
	uint8_t data[HR_SECTION_MAX];
};

/* The transport of a section that belongs to no transport: the label, two numbers of 4 bytes that the layer above has chosen
 * (struct hr_label). */
#define HR_SECTION_LABEL (1u << 7)

/* A card's content, decoded. */
struct hr_identity {
	struct hr_host host;
	uint8_t uid[HR_UID_BYTES];
	bool listens;
	uint16_t port;
	uint8_t unix_len;
	uint8_t unix_name[HR_UNIX_NAME_MAX];
	int n_addresses;
	struct hr_address addresses[HR_ADDRESSES_MAX];
	int n_sections;
	struct hr_section sections[HR_SECTIONS_MAX];
};

/* Encodes a card. Leaves out addresses that do not fit. */
void hr_card_encode(const struct hr_identity *identity, hr_card_t *card);

/* Decodes a card. -EINVAL: not a card, damaged, or another version (logged). */
int hr_card_decode(const hr_card_t *card, struct hr_identity *identity);

/* Returns the correct value of hr_card_wire.check. card->len must cover the fixed part. */
uint32_t hr_card_check_sum(const hr_card_t *card);

/* Returns whether both are on one host and in one network namespace, so that a Unix socket can connect them. */
bool hr_identity_same_host(const struct hr_identity *a, const struct hr_identity *b);

/* Returns the section of a transport; NULL: the card has none. */
const struct hr_section *hr_identity_section(const struct hr_identity *identity, uint32_t transport);

#endif
