/* SPDX-License-Identifier: BSD-3-Clause */
/* What the clients of PMI-1 and PMI-2 share: the descriptor, fields of messages, the process mapping, cards as text. */
#include "adi/core/launch.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int launch_number(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	long number = strtol(text, &end, 10);
	return *end || errno || number > INT_MAX ? -1 : (int)number;
}

int launch_wire_open(struct launch_wire *wire)
{
	wire->fd = launch_number("PMI_FD");
	wire->len = 0;
	return wire->fd < 0 ? -ENOENT : 0;
}

void launch_wire_close(struct launch_wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
}

static int wire_error(const char *what, int error)
{
	hr_log(HR_LOG_ERROR, "adi: the connection to the process manager: %s: %s", what, strerror(error));
	return -error;
}

/* A connection that the process manager has closed is an error, not the signal SIGPIPE. The descriptor may be no socket. */
static ssize_t send_some(int fd, const char *text, size_t len)
{
	ssize_t some = send(fd, text, len, MSG_NOSIGNAL);
	return some < 0 && errno == ENOTSOCK ? write(fd, text, len) : some;
}

int launch_wire_send(struct launch_wire *wire, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t some = send_some(wire->fd, text, len);
		if (some < 0 && errno != EINTR)
			return wire_error("write", errno);
		if (some > 0) {
			text += some;
			len -= (size_t)some;
		}
	}
	return 0;
}

bool launch_wire_readable(const struct launch_wire *wire)
{
	struct pollfd ready = { wire->fd, POLLIN, 0 };
	return wire->len > 0 || poll(&ready, 1, 0) > 0;
}

/* Waits for more bytes. */
static int wire_fill(struct launch_wire *wire)
{
	if (wire->len == sizeof wire->bytes)
		return wire_error("a message is too long", EMSGSIZE);
	ssize_t some;
	do
		some = read(wire->fd, wire->bytes + wire->len, sizeof wire->bytes - wire->len);
	while (some < 0 && errno == EINTR);
	if (some <= 0)
		return wire_error("read", some < 0 ? errno : ECONNRESET);
	wire->len += (size_t)some;
	return 0;
}

static void wire_take(struct launch_wire *wire, size_t len, size_t skip, char *text)
{
	memcpy(text, wire->bytes, len);
	text[len] = '\0';
	wire->len -= len + skip;
	memmove(wire->bytes, wire->bytes + len + skip, wire->len);
}

int launch_wire_line(struct launch_wire *wire, char text[LAUNCH_TEXT])
{
	const char *end;
	while (!(end = memchr(wire->bytes, '\n', wire->len))) {
		int error = wire_fill(wire);
		if (error)
			return error;
	}
	wire_take(wire, (size_t)(end - wire->bytes), 1, text);
	return 0;
}

int launch_wire_bytes(struct launch_wire *wire, size_t len, char text[LAUNCH_TEXT])
{
	if (len >= LAUNCH_TEXT)
		return wire_error("a message is too long", EMSGSIZE);
	while (wire->len < len) {
		int error = wire_fill(wire);
		if (error)
			return error;
	}
	wire_take(wire, len, 0, text);
	return 0;
}

bool launch_field(const char *text, const char *name, char separator, char *value, size_t max)
{
	size_t name_len = strlen(name);
	for (const char *at = text; at && *at; at = strchr(at, separator), at = at ? at + 1 : NULL) {
		if (strncmp(at, name, name_len) || at[name_len] != '=')
			continue;
		const char *begin = at + name_len + 1, *end = strchr(begin, separator);
		size_t len = end ? (size_t)(end - begin) : strlen(begin);
		if (len >= max)
			return false;
		memcpy(value, begin, len);
		value[len] = '\0';
		return true;
	}
	return false;
}

/* ---- process mapping: (vector,(FIRST NODE,NODES,RANKS PER NODE),...), repeated until all ranks have a node ---- */

struct block {
	int first, nodes, per_node;
};

/* Reads the block behind the comma *at, and moves *at to the comma behind the block; NULL: there is none. ranks: those of all blocks
 * before. False: there is no valid block. */
static bool block_read(const char **at, int ranks, struct block *block)
{
	if (!*at || sscanf(*at + 1, "(%d,%d,%d)", &block->first, &block->nodes, &block->per_node) != 3)
		return false;
	const char *next = strchr(*at + 2, '(');
	*at = next ? next - 1 : NULL;
	return block->first >= 0 && block->nodes > 0 && block->per_node > 0 && block->first <= INT_MAX - block->nodes &&
	       block->nodes <= INT_MAX / block->per_node && ranks <= INT_MAX - block->nodes * block->per_node;
}

/* Returns the node of a rank within the blocks, -1 if the rank is behind them; *ranks: ranks in all blocks. */
static int mapping_node(const char *mapping, int rank, int *ranks)
{
	int node = -1;
	struct block block;
	*ranks = 0;
	for (const char *at = strchr(mapping, ','); block_read(&at, *ranks, &block); *ranks += block.nodes * block.per_node) {
		int in_block = rank - *ranks;
		if (node < 0 && in_block >= 0 && in_block < block.nodes * block.per_node)
			node = block.first + in_block / block.per_node;
	}
	return node;
}

/* Returns how many ranks below `end` the blocks place on a node. */
static int mapping_on_node(const char *mapping, int node, int end)
{
	int count = 0, begin = 0;
	struct block block;
	for (const char *at = strchr(mapping, ','); block_read(&at, begin, &block); begin += block.nodes * block.per_node) {
		int at_node = node - block.first, from = begin;
		if (at_node < 0 || at_node >= block.nodes)
			continue;
		from += at_node * block.per_node;
		int to = end - from < block.per_node ? end : from + block.per_node;
		count += to > from ? to - from : 0;
	}
	return count;
}

int launch_local_size(const char *mapping, int rank, int size)
{
	int ranks;
	if (strncmp(mapping, "(vector,", 8))
		return 1;
	mapping_node(mapping, 0, &ranks);
	if (ranks <= 0)
		return 1;
	int mine = mapping_node(mapping, rank % ranks, &ranks);
	int local = size / ranks * mapping_on_node(mapping, mine, ranks) + mapping_on_node(mapping, mine, size % ranks);
	return local > 0 ? local : 1;
}

/* ---- cards: hexadecimal digits, then '+' if there is another text ---- */

bool launch_card_text(const hr_card_t *card, int n, size_t max, char *text)
{
	size_t per_text = (max - 2) / 2, begin = (size_t)n * per_text, len = card->len;
	if (begin >= len)
		return false;
	size_t end = len - begin < per_text ? len : begin + per_text;
	for (size_t i = begin; i < end; i++, text += 2)
		snprintf(text, 3, "%02x", (unsigned char)card->data[i]);
	strcpy(text, end < len ? "+" : "");
	return true;
}

int launch_card_invalid(int rank, const char *text)
{
	hr_log(HR_LOG_ERROR, "adi: the process manager has no valid card of rank %d; it answered \"%s\"", rank, text);
	return -EPROTO;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int launch_card_add(hr_card_t *card, const char *text, bool *more)
{
	uint32_t before = card->len;
	for (; *text && *text != '+'; text += 2) {
		int high = digit(text[0]), low = high < 0 ? -1 : digit(text[1]);
		if (low < 0 || card->len >= sizeof card->data)
			return -EPROTO;
		card->data[card->len++] = (unsigned char)(high << 4 | low);
	}
	*more = *text == '+';
	return card->len > before ? 0 : -EPROTO;
}
