/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel within one process over byte queues, with faults on command, for tests of ch3 alone. */
#include "test/ch3/memory_channel.h"

#include "rdma_channel/remote_access.h"
#include "rdma_channel/upper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory_faults memory_faults;
int memory_connections;
unsigned memory_attempts;
void (*memory_visited)(void);

#define CHANNELS 64
#define OFFERED 256 /* maximum number of elements of a get that is checked */

/* One direction of a connection. pipe_moved has to follow each change of len. Freed when both ends are closed. */
/* More records than this that the receiver has not taken count as one. */
#define RECORDS 64u

struct pipe {
	uint8_t *bytes;
	size_t begin, len, size;
	uint64_t appended;     /* bytes so far */
	uint64_t end[RECORDS]; /* ends of records, and of what lies before a record, as values of appended */
	unsigned first_end, n_ends;
	int error;
	int users;
	struct hr_awaited awaited; /* what hr_conn_watch returns */
	uint64_t word;             /* awaited.word: NOTHING_THERE or SOMETHING_THERE */
};

/* The high half of the watched word is HIGH if there are bytes in the pipe. */
#define HIGH 7u
#define NOTHING_THERE ((uint64_t)(HIGH - 1) << 32 | 1)
#define SOMETHING_THERE ((uint64_t)HIGH << 32 | 1)

struct hr_conn {
	hr_channel_t *channel;
	hr_conn_t *next;
	unsigned peer;
	bool matched;
	int aborted; /* the error of hr_conn_abort; 0: not aborted */
	struct pipe *in, *out;
	unsigned attempts;
	size_t early; /* bytes in the pipe, or got by the peer, that no put has accepted yet */
	uint64_t puts;
	void *user;
	const void *rest; /* first byte of a large piece that the last put did not accept, or NULL */
	unsigned peeks;
	bool promised; /* the caller has looked ahead, and offers the rest of each vector again */
	struct iovec offered[OFFERED]; /* the rest of the last get's vector, if it has long elements */
	int n_offered;
	uint8_t record[HR_RECORD_MAX]; /* the memory that hr_conn_reserve returns */
	char name[16];
};

struct hr_channel {
	unsigned index;
	hr_conn_t *conns;
	bool visited, told; /* visited: hr_channel_incoming will return visitor; told: a wait has reported it */
	hr_card_t visitor;
};

static hr_channel_t *channels[CHANNELS];

/* Exposed memory. The key of its token is a number. As with memory that stays registered, the peer can write it after
 * hr_remote_hide until the connection is aborted or closed. The double aborts the test if the peer does so. */
struct hr_exposed {
	hr_exposed_t *next;
	const struct pipe *in; /* of the connection that exposed it */
	uint32_t key;
	uint8_t *address;
	size_t len;
	bool hidden;
};

static hr_exposed_t *all_exposed;

/* Invalidates the tokens of all memory that this end of the connection exposed. */
static void exposed_end(const struct pipe *in)
{
	for (hr_exposed_t *exposed = all_exposed; exposed; exposed = exposed->next)
		if (exposed->in == in)
			exposed->key = 0;
}

int hr_channel_init(const hr_channel_attr_t *attr, hr_channel_t **channel, hr_card_t *card)
{
	(void)attr;
	for (unsigned i = 0; i < CHANNELS; i++) {
		if (channels[i])
			continue;
		*channel = channels[i] = calloc(1, sizeof **channel);
		channels[i]->index = i;
		card->len = sizeof i;
		memcpy(card->data, &i, sizeof i);
		return 0;
	}
	return -EMFILE;
}

static void pipe_moved(struct pipe *pipe)
{
	pipe->word = pipe->len ? SOMETHING_THERE : NOTHING_THERE;
}

static struct pipe *pipe_make(void)
{
	struct pipe *pipe = calloc(1, sizeof *pipe);
	pipe->awaited = (struct hr_awaited){ &pipe->word, HIGH, 0, false };
	return pipe;
}

static hr_conn_t *find(const hr_channel_t *channel, unsigned peer)
{
	for (hr_conn_t *conn = channel ? channel->conns : NULL; conn; conn = conn->next)
		if (conn->peer == peer)
			return conn;
	return NULL;
}

int hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr, hr_conn_t **conn)
{
	(void)attr;
	unsigned peer;
	memcpy(&peer, card->data, sizeof peer);
	if (card->len != sizeof peer || peer >= CHANNELS)
		return -EINVAL;
	if (find(channel, peer))
		return -EEXIST;
	hr_conn_t *made = calloc(1, sizeof *made);
	hr_conn_t *other = find(channels[peer], channel->index);
	memory_connections++;
	made->channel = channel;
	made->peer = peer;
	made->in = other ? other->out : pipe_make();
	made->out = other ? other->in : pipe_make();
	made->in->users++;
	made->out->users++;
	made->matched = other != NULL;
	if (other)
		other->matched = true;
	snprintf(made->name, sizeof made->name, "memory:%u", peer);
	made->next = channel->conns;
	channel->conns = made;
	*conn = made;
	return 0;
}

static void pipe_append(struct pipe *pipe, const void *bytes, size_t len)
{
	if (pipe->begin + pipe->len + len > pipe->size) {
		size_t size = 2 * (pipe->len + len);
		uint8_t *grown = malloc(size);
		if (pipe->len)
			memcpy(grown, pipe->bytes + pipe->begin, pipe->len);
		free(pipe->bytes);
		pipe->bytes = grown;
		pipe->begin = 0;
		pipe->size = size;
	}
	if (len)
		memcpy(pipe->bytes + pipe->begin + pipe->len, bytes, len);
	pipe->len += len;
	pipe->appended += len;
	pipe_moved(pipe);
}

/* What was appended so far, and what comes next, are different records. */
static void pipe_end_record(struct pipe *pipe)
{
	if (pipe->n_ends < RECORDS)
		pipe->end[(pipe->first_end + pipe->n_ends++) % RECORDS] = pipe->appended;
}

static void pipe_append_record(struct pipe *pipe, const void *bytes, size_t len)
{
	pipe_end_record(pipe);
	pipe_append(pipe, bytes, len);
	pipe_end_record(pipe);
}

/* Returns the bytes at the head of the pipe that belong to one record, or to no record. */
static size_t pipe_record_len(struct pipe *pipe)
{
	uint64_t head = pipe->appended - pipe->len;
	for (; pipe->n_ends > 0 && pipe->end[pipe->first_end] <= head; pipe->n_ends--)
		pipe->first_end = (pipe->first_end + 1) % RECORDS;
	return pipe->n_ends > 0 ? (size_t)(pipe->end[pipe->first_end] - head) : pipe->len;
}

static void check_rest(hr_conn_t *conn, const struct iovec *iov, int n)
{
	while (n > 0 && iov->iov_len == 0)
		iov++, n--;
	if (!conn->rest || (n > 0 && iov->iov_base == conn->rest))
		return;
	fprintf(stderr, "memory channel: a short put was not continued with its rest\n");
	abort();
}

/* A put that transfers all bytes that were not transferred before. Of these it accepts only short pieces before the first
 * long one, and of the earlier ones those that the peer has got. */
static int put_late(hr_conn_t *conn, const struct iovec *iov, int n, size_t *accepted)
{
	size_t skip = conn->early, total = 0;
	bool accepts = !skip || !conn->out->len;
	*accepted = accepts ? skip : 0;
	for (int i = 0; i < n && conn->matched; i++) {
		size_t len = iov[i].iov_len, before = skip < len ? skip : len;
		pipe_append(conn->out, (const char *)iov[i].iov_base + before, len - before);
		skip -= before;
		total += len;
		accepts = accepts && len - before < HR_ZERO_COPY_MIN;
		*accepted += accepts ? len - before : 0;
	}
	if (skip > 0) {
		fprintf(stderr, "memory channel: a put offers fewer bytes than were transferred\n");
		abort();
	}
	conn->early = conn->matched ? total - *accepted : 0;
	conn->puts += *accepted > 0;
	return 0;
}

int hr_channel_put(hr_conn_t *conn, const struct iovec *iov, int n, size_t *accepted)
{
	memory_attempts++;
	if (conn->aborted || conn->out->error)
		return conn->aborted ? conn->aborted : conn->out->error;
	if (memory_faults.accept_late)
		return put_late(conn, iov, n, accepted);
	check_rest(conn, iov, n);
	size_t capacity = memory_faults.capacity ? memory_faults.capacity : 65536;
	size_t room = conn->matched && conn->out->len < capacity ? capacity - conn->out->len : 0;
	if (memory_faults.put_max && room > memory_faults.put_max)
		room = memory_faults.put_max;
	if (memory_faults.put_every && ++conn->attempts % memory_faults.put_every)
		room = 0;
	size_t total = 0;
	conn->rest = NULL;
	for (int i = 0; i < n; i++) {
		size_t some = iov[i].iov_len < room - total ? iov[i].iov_len : room - total;
		pipe_append(conn->out, iov[i].iov_base, some);
		total += some;
		if (some < iov[i].iov_len) {
			if (iov[i].iov_len >= HR_ZERO_COPY_MIN)
				conn->rest = (const char *)iov[i].iov_base + some;
			break;
		}
	}
	conn->puts += total > 0;
	*accepted = total;
	return 0;
}

/* Returns the address at that offset of the vector; NULL behind its end. */
static const uint8_t *address_at(const struct iovec *iov, int n, size_t offset)
{
	for (int i = 0; i < n; offset -= iov[i].iov_len, i++)
		if (offset < iov[i].iov_len)
			return (const uint8_t *)iov[i].iov_base + offset;
	return NULL;
}

/* Aborts the test if a get does not offer again the long elements of the last one that it did not fill. */
static void check_offered(const hr_conn_t *conn, const struct iovec *iov, int n)
{
	size_t offset = 0;
	for (int i = 0; i < conn->n_offered; offset += conn->offered[i].iov_len, i++) {
		const struct iovec *piece = &conn->offered[i];
		const uint8_t *begin = piece->iov_base;
		if (piece->iov_len < HR_ZERO_COPY_MIN || (address_at(iov, n, offset) == begin &&
		    address_at(iov, n, offset + piece->iov_len - 1) == begin + piece->iov_len - 1))
			continue;
		fprintf(stderr, "memory channel: a get does not offer the memory of the one before it\n");
		abort();
	}
}

/* Keeps the rest of the vector, of which the first bytes were filled. */
static void keep_offered(hr_conn_t *conn, const struct iovec *iov, int n, size_t filled)
{
	conn->n_offered = 0;
	for (int i = 0; i < n && i < OFFERED; i++) {
		size_t some = filled < iov[i].iov_len ? filled : iov[i].iov_len;
		filled -= some;
		conn->offered[conn->n_offered++] = (struct iovec){ (uint8_t *)iov[i].iov_base + some, iov[i].iov_len - some };
	}
}

int hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered)
{
	struct pipe *in = conn->in;
	if (conn->aborted || (!in->len && in->error))
		return conn->aborted ? conn->aborted : in->error;
	size_t limit = memory_faults.get_max && in->len > memory_faults.get_max ? memory_faults.get_max : in->len;
	size_t total = 0;
	if (conn->promised)
		check_offered(conn, iov, n);
	for (int i = 0; i < n && total < limit; i++) {
		size_t some = iov[i].iov_len < limit - total ? iov[i].iov_len : limit - total;
		if (some)
			memcpy(iov[i].iov_base, in->bytes + in->begin, some);
		in->begin += some;
		in->len -= some;
		total += some;
	}
	pipe_moved(in);
	keep_offered(conn, iov, n, total);
	*delivered = total;
	return 0;
}

bool hr_conn_in_place(const hr_conn_t *conn)
{
	return conn->matched && !memory_faults.put_every && !memory_faults.put_max && !memory_faults.accept_late;
}

/* Records in place, as over shared memory. With faults that shorten puts, no reservation is possible. */
void *hr_conn_reserve(hr_conn_t *conn, size_t front, size_t len)
{
	(void)front;
	size_t capacity = memory_faults.capacity ? memory_faults.capacity : 65536;
	if (conn->aborted || conn->out->error || !conn->matched || memory_faults.put_every || memory_faults.put_max ||
	    memory_faults.accept_late || conn->out->len + len > capacity)
		return NULL;
	return conn->record;
}

void hr_conn_fill(hr_conn_t *conn, void *to, const void *from, size_t len)
{
	(void)conn;
	memcpy(to, from, len);
}

void hr_conn_drain(hr_conn_t *conn, void *to, const void *from, size_t len)
{
	(void)conn;
	memcpy(to, from, len);
}

void hr_conn_commit(hr_conn_t *conn, size_t len)
{
	memory_attempts++;
	conn->puts++;
	pipe_append_record(conn->out, conn->record, len);
}

bool hr_conn_post(hr_conn_t *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	uint8_t *at = hr_conn_reserve(conn, front_len, front_len + len);
	if (!at)
		return false;
	memcpy(at, front, front_len);
	if (len > 0)
		memcpy(at + front_len, payload, len);
	hr_conn_commit(conn, front_len + len);
	return true;
}

/* Every third call returns HR_CALL_GET, so that the caller uses both ways to receive. */
enum hr_arrival hr_conn_peek(hr_conn_t *conn, const uint8_t **bytes, size_t *len)
{
	struct pipe *in = conn->in;
	if (conn->aborted || (!in->len && in->error) || ++conn->peeks % 3 == 0)
		return HR_CALL_GET;
	if (!in->len)
		return HR_NOT_ARRIVED;
	*bytes = in->bytes + in->begin;
	*len = pipe_record_len(in);
	if (memory_faults.get_max && *len > memory_faults.get_max)
		*len = memory_faults.get_max;
	return HR_ARRIVED;
}

void hr_conn_consume(hr_conn_t *conn, size_t count)
{
	conn->in->begin += count;
	conn->in->len -= count;
	pipe_moved(conn->in);
}

int hr_conn_take(hr_conn_t *conn, hr_record_fn fn, void *context, unsigned most)
{
	const uint8_t *bytes;
	size_t len;
	unsigned count = 0;
	int result = 1;
	while (result > 0 && count < most && hr_conn_peek(conn, &bytes, &len) == HR_ARRIVED) {
		result = fn(context, bytes, len);
		if (result > 0) {
			hr_conn_consume(conn, len);
			count++;
		}
	}
	return result < 0 ? result : (int)count;
}

size_t hr_conn_ahead(hr_conn_t *conn, uint64_t skip, void *to, size_t len)
{
	const struct pipe *in = conn->in;
	conn->promised |= memory_faults.ahead;
	if (!memory_faults.ahead || conn->aborted || skip >= in->len)
		return 0;
	size_t some = in->len - (size_t)skip < len ? in->len - (size_t)skip : len;
	memcpy(to, in->bytes + in->begin + skip, some);
	return some;
}

struct hr_awaited *hr_conn_watch(hr_conn_t *conn)
{
	return &conn->in->awaited;
}

static void pipe_release(struct pipe *pipe, int error)
{
	if (!pipe->error)
		pipe->error = error;
	if (--pipe->users)
		return;
	free(pipe->bytes);
	free(pipe);
}

void hr_conn_close(hr_conn_t *conn)
{
	if (!conn)
		return;
	hr_conn_t **link = &conn->channel->conns;
	while (*link != conn)
		link = &(*link)->next;
	*link = conn->next;
	exposed_end(conn->in);
	memory_connections--;
	pipe_release(conn->in, -ESHUTDOWN);
	pipe_release(conn->out, -ESHUTDOWN);
	free(conn);
}

void hr_channel_finalize(hr_channel_t *channel)
{
	if (!channel)
		return;
	while (channel->conns)
		hr_conn_close(channel->conns);
	channels[channel->index] = NULL;
	free(channel);
}

int hr_conn_state(hr_conn_t *conn)
{
	if (conn->aborted)
		return conn->aborted;
	return conn->in->error ? conn->in->error : conn->matched;
}

static bool has_something(const hr_conn_t *conn, int want_put)
{
	return !conn->aborted &&
	       (conn->in->len || conn->in->error || (want_put && (memory_faults.put_every || conn->early || !conn->out->len)));
}

/* As hr_channel_wait below. */
int hr_conn_wait(hr_conn_t *conn, int want_put, int timeout_ms)
{
	(void)timeout_ms;
	return has_something(conn, want_put);
}

void hr_conn_abort(hr_conn_t *conn, int error)
{
	conn->aborted = error;
	exposed_end(conn->in);
	if (!conn->in->error)
		conn->in->error = -ECONNRESET;
	if (!conn->out->error)
		conn->out->error = -ECONNRESET;
}

static bool tell_of_visitor(hr_channel_t *channel)
{
	void (*visited)(void) = memory_visited;
	if (!channel->visited || channel->told)
		return false;
	channel->told = true;
	memory_visited = NULL;
	if (visited)
		visited();
	return true;
}

/* Never sleeps: nothing else runs in this process, so an event that is not pending now will not occur. */
int hr_channel_wait(hr_channel_t *channel, int want_put, int timeout_ms)
{
	(void)timeout_ms;
	if (tell_of_visitor(channel))
		return 1;
	for (const hr_conn_t *conn = channel->conns; conn; conn = conn->next)
		if (has_something(conn, want_put))
			return 1;
	if (channel->visited) {
		fprintf(stderr, "memory channel: a wait would sleep, and nobody has asked for the peer that came\n");
		abort();
	}
	return 0;
}

/* Moves the returned connection to the end of the list, so that ready connections are returned in turn. */
hr_conn_t *hr_channel_ready(hr_channel_t *channel, int want_put)
{
	for (hr_conn_t **link = &channel->conns; *link; link = &(*link)->next) {
		hr_conn_t *conn = *link;
		if (!has_something(conn, want_put))
			continue;
		hr_conn_t **end = link;
		*link = conn->next;
		while (*end)
			end = &(*end)->next;
		*end = conn;
		conn->next = NULL;
		return conn;
	}
	return NULL;
}

void memory_channel_visit(hr_channel_t *channel, const hr_card_t *card)
{
	channel->visited = true;
	channel->told = false;
	channel->visitor = *card;
}

/* The peers of these tests have no numbers. */
void hr_channel_label(hr_channel_t *channel, struct hr_label label, hr_card_t *card)
{
	(void)channel, (void)label, (void)card;
	abort();
}

int hr_card_label(const hr_card_t *card, struct hr_label *label)
{
	(void)card, (void)label;
	return -ENOENT;
}

int hr_channel_incoming(hr_channel_t *channel, hr_card_t *card)
{
	if (!channel->visited)
		return 0;
	channel->visited = false;
	*card = channel->visitor;
	return 1;
}

void hr_conn_set_user(hr_conn_t *conn, void *user)
{
	conn->user = user;
}

void *hr_conn_user(const hr_conn_t *conn)
{
	return conn->user;
}

const char *hr_conn_peer(const hr_conn_t *conn)
{
	return conn->name;
}

const char *hr_conn_transport(const hr_conn_t *conn)
{
	return conn->matched ? "memory" : "none";
}

void memory_conn_inject(hr_conn_t *conn, const void *bytes, size_t len)
{
	pipe_append(conn->in, bytes, len);
}

void memory_conn_inject_record(hr_conn_t *conn, const void *bytes, size_t len)
{
	pipe_append_record(conn->in, bytes, len);
}

void memory_conn_break(hr_conn_t *conn, int error)
{
	conn->in->error = conn->out->error = error;
}

uint64_t memory_conn_puts(const hr_conn_t *conn)
{
	return conn->puts;
}

/* ---- remote access ---- */

uint64_t memory_remote_bytes;

struct hr_remote_access {
	struct hr_token token;
	uint64_t offset;
	const void *from; /* of a write */
	void *to;         /* of a read; NULL: a write */
	size_t len;
	int polls;
	bool done;
};

/* Decrements a fault counter. Returns whether it has reached 0, so that this call must fail. */
static bool fails_now(int *countdown)
{
	return *countdown > 0 && --*countdown == 0;
}

bool hr_remote_can(hr_conn_t *conn)
{
	return conn->matched && !memory_faults.no_remote;
}

int hr_remote_expose(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	static uint32_t keys;
	if (conn->in->error || fails_now(&memory_faults.expose_fails))
		return conn->in->error ? conn->in->error : -ENOMEM;
	hr_exposed_t *made = malloc(sizeof *made);
	*made = (hr_exposed_t){ all_exposed, conn->in, ++keys, address, len, false };
	all_exposed = made;
	*exposed = made;
	*token = (struct hr_token){ 0, made->key, 0 };
	return 0;
}

int hr_remote_share(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	return hr_remote_expose(conn, address, len, exposed, token);
}

void hr_remote_hide(hr_exposed_t *exposed)
{
	exposed->hidden = true;
}

int hr_remote_write(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
		    hr_remote_access_t **write)
{
	if (conn->out->error || fails_now(&memory_faults.write_fails))
		return conn->out->error ? conn->out->error : -ENOMEM;
	*write = malloc(sizeof **write);
	**write = (hr_remote_access_t){ *token, offset, address, NULL, len, memory_faults.write_polls, false };
	return 0;
}

int hr_remote_read(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
		   hr_remote_access_t **read)
{
	int error = hr_remote_write(conn, token, offset, NULL, len, read);
	if (!error)
		(*read)->to = address;
	return error;
}

int hr_remote_test(hr_conn_t *conn, hr_remote_access_t *write)
{
	if (write->done)
		return 1;
	if (conn->out->error)
		return conn->out->error;
	if (write->polls-- > 0)
		return 0;
	hr_exposed_t *to = all_exposed;
	while (to && (to->key != write->token.key || to->in != conn->out))
		to = to->next;
	if (!to || write->offset > to->len || write->len > to->len - write->offset) {
		memory_conn_break(conn, -EPROTO);
		return -EPROTO;
	}
	if (to->hidden) {
		fprintf(stderr, "memory channel: memory was written after it had been hidden\n");
		abort();
	}
	if (write->to)
		memcpy(write->to, to->address + write->offset, write->len);
	else
		memcpy(to->address + write->offset, write->from, write->len);
	memory_remote_bytes += write->len;
	write->done = true;
	return 1;
}

void hr_remote_end(hr_remote_access_t *write)
{
	free(write);
}
