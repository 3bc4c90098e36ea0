/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the program peer share: the GPUs of three servers, and the tests that peer.c runs. */
#ifndef TEST_REMOTE_PEER_H
#define TEST_REMOTE_PEER_H

#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

#define DEVICES 3
#define BYTES ((9u << 20) + 12) /* several pieces of a copy by way of the client, and a rest */
#define WORDS (BYTES / 4)

struct place {
	CUcontext context;
	CUstream stream, other; /* neither waits for the default stream */
	CUevent event;
	CUdeviceptr memory; /* BYTES */
};

/* peer_places.c */
extern struct place places[DEVICES];
extern uint32_t *there, *back; /* WORDS words of the host each */

void set_up(void);
void tear_down(struct place *place);
/* Makes the device's context current. */
void use(int device);
/* Fills `there`; each seed gives other words. */
void fill(uint32_t seed);
/* Read device memory, whichever context is current. */
void expect_at(CUdeviceptr at, const void *bytes, size_t size);
void expect_word(CUdeviceptr at, uint32_t value);

/* A stream that waits until the test lets it go on. */
struct held {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool released;
};

void hold_stream(struct held *held, CUstream stream);
void release(struct held *held);
/* A host function: after a while, sets the bool that it is given. */
void note_late(void *done);

/* peer_shapes.c */
void default_copies_in_all_directions(void);
void peer_copies(void);
void boxes(void);

/* peer_order.c */
void a_copy_is_in_its_streams_order(int from, int to, int stream_of);
void events_of_another_server(void);
void waits_cross(void);
void threads_do_not_block_each_other(void);
void ends_wait_for_copies(void);
void captures_forbid(void);
void ring(void);
/* One round: every server passes its block on to the next and then marks it. Events order what streams do not. */
void ring_round(uint32_t round, uint32_t words);

/* peer_default_streams.c */
void default_streams_of_both(int current);
void ordered_with_current(int which);
void default_stream_of_another_server(int current, int memory);
void peer_copies_wait(void);
void peer_copy_waits_for_current(int current, int memory);

/* peer_host_memory.c */
void pinned_memory_is_awaited(int from, int to);
void copies_into_the_same_memory(int first, int second);
void memory_of_another_server(int streams, int memory);
void managed_memory_of_another_server(int current, int memory);
void source_changes(bool by_call);

/* peer_arrays.c */
void arrays_between_servers(void);

/* peer_drivers.c */
void links_are_being_opened(void);
void many_are_held(void);
void code_is_loaded(void);
void one_queue(void);

/* peer_death.c */
void a_server_dies(void);

#endif
