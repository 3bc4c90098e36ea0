/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver of zero copy: splits announced memory into RDMA reads and tracks their completion. */
#include "ib/ib_pull.h"

#include "headrace/channel.h"

#include <errno.h>
#include <string.h>

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct ib_pull *pull_of(struct ib_pulls *pulls, uint32_t number)
{
	return &pulls->pull[number % IB_PULLS_MAX];
}

static const struct ib_pull *pull_at(const struct ib_pulls *pulls, uint32_t number)
{
	return &pulls->pull[number % IB_PULLS_MAX];
}

/* ---- announcements ---- */

int ib_pulls_announce(struct ib_pulls *pulls, const struct ib_announcement *announcement)
{
	if (announcement->len == 0 || announcement->len > IB_ANNOUNCED_BYTES_MAX || announcement->reserved != 0 ||
	    announcement->address + announcement->len < announcement->address ||
	    pulls->ann_end - pulls->ann_first >= IB_OFFERS_MAX)
		return -EPROTO;
	pulls->announced[pulls->ann_end % IB_OFFERS_MAX] = (struct ib_announced){
		.address = announcement->address, .len = announcement->len, .rkey = announcement->rkey };
	pulls->ann_end++;
	pulls->backlog += announcement->len;
	return 0;
}

uint32_t ib_pulls_acknowledged(const struct ib_pulls *pulls)
{
	return pulls->ann_first;
}

/* ---- planning ---- */

static bool has_place(const struct ib_pulls *pulls)
{
	return pulls->end - pulls->first < IB_PULLS_MAX && pulls->end - pulls->release < IB_PULLS_MAX;
}

bool ib_pulls_get_may_plan(const struct ib_pulls *pulls)
{
	return pulls->end - pulls->first < IB_PULLS_MAX - IB_PULLS_KEPT &&
	       pulls->end - pulls->release < IB_PULLS_MAX - IB_PULLS_KEPT;
}

uint64_t ib_pulls_plannable(const struct ib_pulls *pulls)
{
	const struct ib_announced *announced = &pulls->announced[pulls->ann_plan % IB_OFFERS_MAX];
	if (pulls->ann_plan == pulls->ann_end || !has_place(pulls))
		return 0;
	return announced->len - announced->planned;
}

static struct ib_pull *plan(struct ib_pulls *pulls, uint8_t *to, uint64_t len)
{
	struct ib_announced *announced = &pulls->announced[pulls->ann_plan % IB_OFFERS_MAX];
	struct ib_pull *pull = pull_of(pulls, pulls->end++);
	*pull = (struct ib_pull){ .to = to, .len = len, .from = announced->address + announced->planned,
				  .rkey = announced->rkey };
	announced->planned += len;
	if (announced->planned == announced->len)
		pulls->ann_plan++;
	return pull;
}

void ib_pulls_plan_direct(struct ib_pulls *pulls, uint8_t *to, uint64_t len, uint32_t lkey, void *memory)
{
	struct ib_pull *pull = plan(pulls, to, len);
	pull->lkey = lkey;
	pull->memory = memory;
}

void ib_pulls_bounce(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey)
{
	pulls->bounce = base;
	pulls->bounce_bytes = bytes;
	pulls->bounce_lkey = lkey;
}

void ib_pulls_window(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey)
{
	pulls->window = base;
	pulls->window_bytes = bytes;
	pulls->window_lkey = lkey;
}

uint64_t ib_pulls_space(const struct ib_pulls *pulls, uint8_t **at)
{
	if (!pulls->bounce || !has_place(pulls))
		return 0;
	uint64_t offset = pulls->bounce_head % pulls->bounce_bytes;
	*at = pulls->bounce + offset;
	return min_u64(pulls->bounce_bytes - offset,
		       pulls->bounce_bytes - (pulls->bounce_head - pulls->bounce_tail));
}

uint64_t ib_pulls_plan_bounce(struct ib_pulls *pulls, uint64_t most)
{
	uint8_t *to;
	uint64_t len = min_u64(most, min_u64(ib_pulls_plannable(pulls), ib_pulls_space(pulls, &to)));
	if (len == 0)
		return 0;
	struct ib_pull *pull = plan(pulls, to, len);
	pull->lkey = pulls->bounce_lkey;
	pull->bounce = true;
	pulls->bounce_head += len;
	return len;
}

/* Moves post and reading past pulls that need no further read, such as bytes that came in a chunk. */
static void pass_absorbed(struct ib_pulls *pulls)
{
	while (pulls->post != pulls->end && pull_at(pulls, pulls->post)->posted == pull_at(pulls, pulls->post)->len)
		pulls->post++;
	while (pulls->reading != pulls->end &&
	       pull_at(pulls, pulls->reading)->done == pull_at(pulls, pulls->reading)->len)
		pulls->reading++;
}

void ib_pulls_absorbed(struct ib_pulls *pulls, uint64_t len)
{
	uint8_t *to;
	if (len == 0 || ib_pulls_space(pulls, &to) < len)
		return;
	struct ib_pull *last = pull_of(pulls, pulls->end - 1);
	if (pulls->first != pulls->end && last->bounce && last->done == last->len && last->to + last->len == to) {
		/* Extend the last pull: otherwise many short messages would use up the entries of pull. */
		last->len += len;
		last->posted += len;
		last->done += len;
	} else {
		*pull_of(pulls, pulls->end++) = (struct ib_pull){ .to = to, .len = len, .posted = len, .done = len,
								  .bounce = true };
	}
	pulls->bounce_head += len;
	pulls->backlog += len;
	pass_absorbed(pulls);
}

/* Moves `place`, with *left bytes, past the memory of a direct pull. False: it is not there. */
static bool passes(const struct ib_pull *pull, struct hr_iov_place *place, size_t *left)
{
	for (uint64_t at = 0; at < pull->len;) {
		uint8_t *to;
		size_t piece = hr_iov_piece(place, &to);
		size_t step = (size_t)min_u64(min_u64(piece, *left), pull->len - at);
		if (step == 0 || to != pull->to + at)
			return false;
		hr_iov_advance(place, step);
		*left -= step;
		at += step;
	}
	return true;
}

bool ib_pulls_goes_on(const struct ib_pulls *pulls, struct hr_iov_place place, size_t left)
{
	for (uint32_t i = pulls->first; i != pulls->end; i++) {
		const struct ib_pull *pull = pull_at(pulls, i);
		if (pull->bounce) {
			size_t step = (size_t)min_u64(pull->len - pull->taken, left);
			hr_iov_advance(&place, step);
			left -= step;
		} else if (!passes(pull, &place, &left)) {
			return false;
		}
	}
	return true;
}

bool ib_pulls_skip(const struct ib_pulls *pulls, struct hr_iov_place *place, size_t *left)
{
	bool direct = true;
	for (uint32_t i = pulls->first; i != pulls->end && *left > 0; i++) {
		const struct ib_pull *pull = pull_at(pulls, i);
		size_t step = (size_t)min_u64(pull->len - pull->taken, *left);
		direct = direct && (!pull->bounce || pulls->promised);
		hr_iov_advance(place, step);
		*left -= step;
	}
	return direct;
}

/* ---- reads ---- */

static bool lands_in_window(const struct ib_pulls *pulls, const struct ib_pull *pull)
{
	return pull->bounce && pulls->window;
}

bool ib_pulls_next_read(const struct ib_pulls *pulls, uint64_t most, struct ib_read_request *request)
{
	if (pulls->post == pulls->end || pulls->read_end - pulls->read_first >= IB_READS_MAX)
		return false;
	const struct ib_pull *pull = pull_at(pulls, pulls->post);
	*request = (struct ib_read_request){ pull->to + pull->posted, min_u64(most, pull->len - pull->posted),
					     pull->from + pull->posted, pull->lkey, pull->rkey };
	if (lands_in_window(pulls, pull)) {
		uint64_t offset = pulls->window_head % pulls->window_bytes;
		uint64_t room = pulls->window_bytes - (pulls->window_head - pulls->window_tail);
		request->to = pulls->window + offset;
		request->lkey = pulls->window_lkey;
		request->len = min_u64(request->len, min_u64(room, pulls->window_bytes - offset));
	}
	return request->len > 0;
}

void ib_pulls_posted(struct ib_pulls *pulls, uint64_t len, uint32_t queue, uint32_t count)
{
	struct ib_pull *pull = pull_of(pulls, pulls->post);
	const uint8_t *landing = NULL;
	if (lands_in_window(pulls, pull)) {
		landing = pulls->window + pulls->window_head % pulls->window_bytes;
		pulls->window_head += len;
	}
	pulls->read[pulls->read_end++ % IB_READS_MAX] = (struct ib_read){ len, queue, count, landing };
	pull->posted += len;
	pass_absorbed(pulls);
}

/* Records that one more read, the next in order, is complete. */
static void advance(struct ib_pulls *pulls, const struct ib_read *read)
{
	struct ib_pull *pull = pull_of(pulls, pulls->reading);
	struct ib_announced *announced = &pulls->announced[pulls->ann_first % IB_OFFERS_MAX];
	uint64_t len = read->len;
	if (read->landing) {
		memcpy(pull->to + pull->done, read->landing, len);
		pulls->window_tail += len;
	}
	pull->done += len;
	pass_absorbed(pulls);
	announced->read += len;
	if (announced->read == announced->len)
		pulls->ann_first++;
}

void ib_pulls_complete(struct ib_pulls *pulls, const uint32_t *done)
{
	while (pulls->read_first != pulls->read_end) {
		const struct ib_read *read = &pulls->read[pulls->read_first % IB_READS_MAX];
		if ((int32_t)(done[read->queue] - read->count) < 0)
			return;
		pulls->read_first++;
		advance(pulls, read);
	}
}

void *ib_pulls_release(struct ib_pulls *pulls)
{
	while (pulls->release != pulls->reading) {
		void *memory = pull_of(pulls, pulls->release++)->memory;
		if (memory)
			return memory;
	}
	return NULL;
}

void *ib_pulls_abandon(struct ib_pulls *pulls)
{
	while (pulls->release != pulls->end) {
		void *memory = pull_of(pulls, pulls->release++)->memory;
		if (memory)
			return memory;
	}
	return NULL;
}

/* ---- delivering ---- */

bool ib_pulls_under_way(const struct ib_pulls *pulls)
{
	return pulls->read_first != pulls->read_end;
}

/* Returns how many bytes of the first pull may be delivered. */
static uint64_t deliverable(const struct ib_pulls *pulls)
{
	const struct ib_pull *pull = pull_at(pulls, pulls->first);
	if (pulls->first == pulls->end || (!pull->bounce && pull->done < pull->len))
		return 0;
	return pull->done - pull->taken;
}

bool ib_pulls_ready(const struct ib_pulls *pulls)
{
	return deliverable(pulls) > 0;
}

/* Delivers len bytes of a pull at `place`. The bytes of a direct pull are in place already. */
static void move(const struct ib_pull *pull, struct hr_iov_place *place, size_t len)
{
	const uint8_t *from = pull->to + pull->taken;
	while (len > 0) {
		uint8_t *to;
		size_t step = hr_iov_piece(place, &to);
		step = step < len ? step : len;
		if (pull->bounce)
			memcpy(to, from, step);
		hr_iov_advance(place, step);
		from += step;
		len -= step;
	}
}

size_t ib_pulls_look(const struct ib_pulls *pulls, uint64_t skip, uint8_t *to, size_t len)
{
	size_t copied = 0;
	for (uint32_t i = pulls->first; i != pulls->end && copied < len; i++) {
		const struct ib_pull *pull = pull_at(pulls, i);
		uint64_t step = min_u64(skip, pull->len - pull->taken), from = pull->taken + step;
		skip -= step;
		if (from == pull->len)
			continue;
		if (!pull->bounce || from >= pull->done)
			break;
		size_t some = (size_t)min_u64(pull->done - from, len - copied);
		memcpy(to + copied, pull->to + from, some);
		copied += some;
		if (from + some < pull->len)
			break;
	}
	return copied;
}

size_t ib_pulls_deliver(struct ib_pulls *pulls, struct hr_iov_place *place, size_t left)
{
	size_t total = 0;
	uint64_t there;
	while (total < left && (there = deliverable(pulls)) > 0) {
		struct ib_pull *pull = pull_of(pulls, pulls->first);
		size_t len = (size_t)min_u64(there, left - total);
		move(pull, place, len);
		pull->taken += len;
		total += len;
		if (pull->taken < pull->len)
			continue;
		if (pull->bounce)
			pulls->bounce_tail += pull->len;
		pulls->first++;
	}
	pulls->backlog -= total;
	return total;
}
