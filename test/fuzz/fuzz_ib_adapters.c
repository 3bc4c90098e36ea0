/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a connection's adapters. A peer that sends any section of a card and any note: this side chooses none of its
 * adapters, or one that its own note calls usable. Two honest sides: both choose none, or two whose networks meet.
 *
 * Input: two sides, each a number of adapters and their state and networks; the peer's section and note.
 */
#include "config.h"

#include "ib/ib_adapters.h"
#include "test/fuzz/input.h"

#include <errno.h>
#include <stdlib.h>

enum { /* of an adapter */
	ABSENT = 1u << 0,
	DOWN = 1u << 1,
	LINK_SHIFT = 2,   /* two bits */
	PREFIX_SHIFT = 4, /* two bits: there are few networks, so that some meet */
	PKEY_SHIFT = 6,   /* two bits */
};

struct side {
	struct ib_adapters adapters;
	struct ib_device device[IB_ADAPTERS_MAX];
	uint8_t section[HR_SECTION_MAX], note[HR_NOTE_BYTES];
	size_t section_len;
};

static void make_side(struct side *side, struct fuzz_input *input)
{
	static const uint16_t partitions[] = { 0xffff, 0x7fff, 0x8001, 0x0001 };
	memset(side, 0, sizeof *side);
	side->adapters.n = 1 + fuzz_u8(input) % IB_ADAPTERS_MAX;
	for (unsigned i = 0; i < side->adapters.n; i++) {
		uint8_t kind = fuzz_u8(input);
		struct ib_address *address = &side->device[i].address;
		address->version = IB_WIRE_VERSION;
		address->link = (uint8_t)(1 + (kind >> LINK_SHIFT) % 3);
		address->gid[0] = 0xfe;
		address->gid[1] = (kind >> PREFIX_SHIFT) & 1 ? 0x80 : 0;
		address->gid[7] = (kind >> PREFIX_SHIFT) & 2;
		address->pkey = partitions[kind >> PKEY_SHIFT];
		side->device[i].error = kind & DOWN ? -ENETDOWN : 0;
		if (!(kind & ABSENT))
			side->adapters.device[i] = &side->device[i];
	}
	side->section_len = ib_adapters_describe(&side->adapters, side->section);
	ib_adapters_note(&side->adapters, fuzz_u8(input), side->note);
}

static struct hr_agreement agree(const struct side *own, bool leads, const uint8_t *section, size_t len, const uint8_t *note)
{
	struct hr_agreement agreement = { .section = section, .section_len = len, .leads = leads };
	memcpy(agreement.own, own->note, HR_NOTE_BYTES);
	memcpy(agreement.peer, note, HR_NOTE_BYTES);
	return agreement;
}

/* Chooses, and checks that the device is one that this side has called usable. */
static struct ib_device *choose(struct side *own, const struct hr_agreement *agreement)
{
	struct ib_device *chosen = ib_adapters_choose(&own->adapters, agreement);
	if (!chosen)
		return NULL;
	size_t i = (size_t)(chosen - own->device);
	if (i >= own->adapters.n || own->adapters.device[i] != chosen || chosen->error || !(agreement->own[0] >> i & 1))
		abort();
	return chosen;
}

static void meet(struct side *one, struct side *other)
{
	struct hr_agreement of_one = agree(one, true, other->section, other->section_len, other->note);
	struct hr_agreement of_other = agree(other, false, one->section, one->section_len, one->note);
	struct ib_device *a = choose(one, &of_one), *b = choose(other, &of_other);
	if (!a != !b)
		abort();
	if (!a)
		return;
	struct ib_network networks[2] = { ib_network_of(&a->address), ib_network_of(&b->address) };
	if (!ib_networks_meet(&networks[0], &networks[1]))
		abort();
}

/* The section has memory of its own, so that a read past its end is seen. */
static void meet_stranger(struct side *own, struct side *peer, struct fuzz_input *input)
{
	uint8_t note[HR_NOTE_BYTES], how = fuzz_u8(input);
	size_t len = how & 1 ? fuzz_u8(input) % (HR_SECTION_MAX + 1) : peer->section_len;
	uint8_t *section = malloc(len ? len : 1);
	if (!section)
		abort();
	memcpy(section, peer->section, len < peer->section_len ? len : peer->section_len);
	if (how & 2)
		fuzz_take(input, section, len);
	else if (len > peer->section_len)
		memset(section + peer->section_len, 0, len - peer->section_len);
	fuzz_take(input, note, sizeof note);
	struct hr_agreement agreement = agree(own, how & 4, section, len, note);
	(void)choose(own, &agreement);
	(void)ib_adapters_reach(&own->adapters, section, len);
	free(section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	static struct side one, other;
	make_side(&one, &input);
	make_side(&other, &input);
	meet(&one, &other);
	meet_stranger(&one, &other, &input);
	return 0;
}
