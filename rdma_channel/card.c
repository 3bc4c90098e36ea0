/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes this channel's card. Decodes a peer's card and checks every field. */
#include "rdma_channel/card.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/crc32.h"
#include "rdma_channel/upper.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const uint8_t card_magic[4] = { 'H', 'R', 'C', 'D' };

uint32_t hr_card_check_sum(const hr_card_t *card)
{
	size_t covered = offsetof(struct hr_card_wire, version);
	return hr_crc32(card->data + covered, card->len - covered);
}

static size_t sections_size(const struct hr_identity *identity)
{
	size_t size = 0;
	for (int i = 0; i < identity->n_sections; i++)
		size += 2u + identity->sections[i].len;
	return size;
}

/* Appends the addresses that fit into room bytes. Returns their number. */
static uint8_t append_addresses(const struct hr_identity *identity, size_t room, hr_card_t *card)
{
	uint8_t n = 0;
	for (int i = 0; i < identity->n_addresses; i++) {
		const struct hr_address *address = &identity->addresses[i];
		if (1u + address->len > room)
			continue;
		room -= 1u + address->len;
		card->data[card->len++] = address->len;
		memcpy(card->data + card->len, address->bytes, address->len);
		card->len += address->len;
		n++;
	}
	return n;
}

static void append_sections(const struct hr_identity *identity, hr_card_t *card)
{
	for (int i = 0; i < identity->n_sections; i++) {
		const struct hr_section *section = &identity->sections[i];
		card->data[card->len++] = (uint8_t)section->transport;
		card->data[card->len++] = section->len;
		memcpy(card->data + card->len, section->data, section->len);
		card->len += section->len;
	}
}

void hr_card_encode(const struct hr_identity *identity, hr_card_t *card)
{
	struct hr_card_wire wire = {
		.version = HR_CARD_VERSION,
		.flags = identity->listens ? HR_CARD_LISTENS : 0,
		.n_sections = (uint8_t)identity->n_sections,
		.boot = htole64(identity->host.boot),
		.netns = htole64(identity->host.netns),
		.pid = htole32(identity->host.pid),
		.port = htole16(identity->port),
		.unix_len = identity->unix_len,
	};
	memcpy(wire.magic, card_magic, sizeof wire.magic);
	memcpy(wire.uid, identity->uid, sizeof wire.uid);
	memcpy(wire.unix_name, identity->unix_name, sizeof wire.unix_name);
	memcpy(wire.host, identity->host.name, sizeof wire.host);
	memset(card, 0, sizeof *card);
	card->len = sizeof wire;
	wire.n_addresses = append_addresses(identity, HR_CARD_MAX - sizeof wire - sections_size(identity), card);
	append_sections(identity, card);
	memcpy(card->data, &wire, sizeof wire);
	wire.check = htole32(hr_card_check_sum(card));
	memcpy(card->data, &wire, sizeof wire);
}

static int refuse(const char *reason)
{
	hr_log(HR_LOG_ERROR, "invalid card: it %s", reason);
	return -EINVAL;
}

static int decode_fixed(const hr_card_t *card, struct hr_card_wire *wire)
{
	if (card->len < sizeof *wire || card->len > HR_CARD_MAX)
		return refuse("has an impossible length");
	memcpy(wire, card->data, sizeof *wire);
	if (memcmp(wire->magic, card_magic, sizeof card_magic))
		return refuse("does not begin with the mark of a card");
	if (wire->version != HR_CARD_VERSION) {
		hr_log(HR_LOG_ERROR, "invalid card: it has version %u, this library has version %u",
		       wire->version, HR_CARD_VERSION);
		return -EINVAL;
	}
	if (le32toh(wire->check) != hr_card_check_sum(card))
		return refuse("is damaged: its check sum is wrong");
	if (wire->unix_len > HR_UNIX_NAME_MAX || wire->n_addresses > HR_ADDRESSES_MAX ||
	    wire->n_sections > HR_SECTIONS_MAX || wire->host[HR_HOSTNAME_MAX])
		return refuse("has a field out of range");
	return 0;
}

/* Takes n bytes at *at. False: the card has fewer bytes left. */
static bool take(const hr_card_t *card, size_t *at, void *out, size_t n)
{
	if (n > card->len - *at)
		return false;
	memcpy(out, card->data + *at, n);
	*at += n;
	return true;
}

static bool decode_lists(const hr_card_t *card, struct hr_identity *identity)
{
	size_t at = sizeof(struct hr_card_wire);
	for (int i = 0; i < identity->n_addresses; i++) {
		struct hr_address *address = &identity->addresses[i];
		if (!take(card, &at, &address->len, 1) || (address->len != 4 && address->len != 16) ||
		    !take(card, &at, address->bytes, address->len))
			return false;
	}
	for (int i = 0; i < identity->n_sections; i++) {
		struct hr_section *section = &identity->sections[i];
		uint8_t bit;
		if (!take(card, &at, &bit, 1) || !take(card, &at, &section->len, 1) || section->len > HR_SECTION_MAX ||
		    !take(card, &at, section->data, section->len))
			return false;
		section->transport = bit;
	}
	return at == card->len;
}

/* Takes the peer's host name, which messages and hr_conn_peer show. Replaces bytes that are not printable ASCII. */
static void take_host_name(const struct hr_card_wire *wire, char *name)
{
	memcpy(name, wire->host, sizeof wire->host);
	for (char *c = name; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			*c = '?';
}

int hr_card_decode(const hr_card_t *card, struct hr_identity *identity)
{
	struct hr_card_wire wire;
	int error = decode_fixed(card, &wire);
	if (error)
		return error;
	memset(identity, 0, sizeof *identity);
	identity->host.boot = le64toh(wire.boot);
	identity->host.netns = le64toh(wire.netns);
	identity->host.pid = le32toh(wire.pid);
	take_host_name(&wire, identity->host.name);
	memcpy(identity->uid, wire.uid, sizeof wire.uid);
	identity->listens = wire.flags & HR_CARD_LISTENS;
	identity->port = le16toh(wire.port);
	identity->unix_len = wire.unix_len;
	memcpy(identity->unix_name, wire.unix_name, sizeof wire.unix_name);
	identity->n_addresses = wire.n_addresses;
	identity->n_sections = wire.n_sections;
	if (!decode_lists(card, identity))
		return refuse("has lists that do not fit its length");
	return 0;
}

int hr_card_label(const hr_card_t *card, struct hr_label *label)
{
	struct hr_identity identity;
	uint32_t wire[2];
	int error = hr_card_decode(card, &identity);
	if (error)
		return error;
	const struct hr_section *section = hr_identity_section(&identity, HR_SECTION_LABEL);
	if (!section || section->len != sizeof wire)
		return -ENOENT;
	memcpy(wire, section->data, sizeof wire);
	*label = (struct hr_label){ .number = le32toh(wire[0]), .build = le32toh(wire[1]) };
	return 0;
}

bool hr_identity_same_host(const struct hr_identity *a, const struct hr_identity *b)
{
	return a->host.boot == b->host.boot && a->host.netns == b->host.netns;
}

const struct hr_section *hr_identity_section(const struct hr_identity *identity, uint32_t transport)
{
	for (int i = 0; i < identity->n_sections; i++)
		if (identity->sections[i].transport == transport)
			return &identity->sections[i];
	return NULL;
}
