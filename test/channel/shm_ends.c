/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a shared-memory connection in one process. */
#include "config.h"

#include "test/channel/shm_ends.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void shm_ends_make_in(void *context, struct shm_ends *ends, uint32_t ring_bytes)
{
	int streams[2];
	memset(ends, 0, sizeof *ends);
	ends->context = context;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, streams), 0);
	for (int i = 0; i < 2; i++) {
		struct shm_end *end = &ends->end[i];
		end->stream = streams[i];
		end->env = (struct hr_conn_env){ .ring_bytes = ring_bytes, .timeout_ms = 1000,
						   .peer = "the other end", .stats = &end->stats };
		ck_assert_int_eq(hr_transport_shm.conn_open(ends->context, &end->env, &end->half, &end->conn), 0);
	}
}

void shm_ends_make(struct shm_ends *ends, uint32_t ring_bytes)
{
	static const struct hr_channel_env env = { .timeout_ms = 1000 };
	uint8_t section[HR_SECTION_MAX];
	size_t section_len;
	void *context;
	ck_assert_int_eq(hr_transport_shm.open(&env, &context, section, &section_len), 0);
	shm_ends_make_in(context, ends, ring_bytes);
}

void shm_ends_join(struct shm_ends *ends)
{
	for (int i = 0; i < 2; i++) {
		struct shm_end *end = &ends->end[i];
		ck_assert_int_eq(hr_transport_shm.conn_establish(end->conn, &ends->end[!i].half, end->stream), 0);
	}
}

void shm_ends_close_conns(struct shm_ends *ends)
{
	for (int i = 0; i < 2; i++) {
		hr_transport_shm.conn_close(ends->end[i].conn);
		close(ends->end[i].stream);
	}
}

void shm_ends_close(struct shm_ends *ends)
{
	shm_ends_close_conns(ends);
	hr_transport_shm.close(ends->context);
}

static void transfer(struct shm_end *sender, struct shm_end *receiver, size_t bytes)
{
	uint8_t from[5000], to[5000];
	for (size_t done = 0, n; done < bytes; done += n) {
		struct iovec out = { from, sizeof from }, in = { to, sizeof to };
		size_t got;
		for (size_t i = 0; i < sizeof from; i++)
			from[i] = (uint8_t)((done + i) * 31 >> 3);
		ck_assert_int_eq(hr_transport_shm.put(sender->conn, &out, 1, &n), 0);
		ck_assert_uint_gt(n, 0);
		for (size_t taken = 0; taken < n; taken += got) {
			in = (struct iovec){ to + taken, n - taken };
			ck_assert_int_eq(hr_transport_shm.get(receiver->conn, &in, 1, &got), 0);
		}
		ck_assert_mem_eq(from, to, n);
	}
}

void shm_ends_transfer(struct shm_ends *ends, size_t bytes)
{
	transfer(&ends->end[0], &ends->end[1], bytes);
	transfer(&ends->end[1], &ends->end[0], bytes);
}

/* A line of smaps about the mapping under way. */
static void read_line(const char *line, struct shm_mapping *mapping)
{
	static const char *const huge[] = { "ShmemPmdMapped:", "Shared_Hugetlb:", "Private_Hugetlb:" };
	for (int i = 0; i < 3; i++)
		if (strncmp(line, huge[i], strlen(huge[i])) == 0)
			mapping->huge_bytes += strtoul(line + strlen(huge[i]), NULL, 10) * 1024;
	if (strncmp(line, "VmFlags:", 8) == 0)
		mapping->advised = strstr(line, " hg") != NULL;
}

int shm_mappings(struct shm_mapping *mappings, int most)
{
	char line[512];
	int n = 0;
	struct shm_mapping *mapping = NULL;
	FILE *file = fopen("/proc/self/smaps", "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof line, file)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			mapping = strstr(line, "memfd:headrace-ring") && n < most ? &mappings[n++] : NULL;
			if (mapping)
				*mapping = (struct shm_mapping){ (uint8_t *)start, end - start, false, 0 };
		} else if (mapping) {
			read_line(line, mapping);
		}
	}
	fclose(file);
	return n;
}
