/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does with clients that send nonsense, stall or flood it. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The reason in the refusal that the server sends to a client that sends these bytes; 0: it closes the connection. */
static unsigned refusal_of(rc_server_t place, const void *bytes, size_t size)
{
	struct door_refusal refusal;
	int fd = connect_raw(place);
	ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
	ssize_t n = recv(fd, &refusal, sizeof refusal, MSG_WAITALL);
	close(fd);
	return n == sizeof refusal && refusal.header.kind == DOOR_REFUSAL ? refusal.reason : 0;
}

START_TEST(wrong_hellos_are_refused_with_the_reason)
{
	struct test_server server;
	struct door_hello hello = { 0 };
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_uint_eq(refusal_of(server.place, "GET / HTTP/1.1\r\n\r\n", 18), RC_DOOR_MALFORMED);
	door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	hello.header.version = RC_DOOR_VERSION + 1;
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello.header), RC_DOOR_BAD_VERSION);
	door_header_set(&hello.header, DOOR_WELCOME, sizeof hello);
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello), RC_DOOR_MALFORMED);
	door_header_set(&hello.header, DOOR_HELLO, 1u << 31);
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello), RC_DOOR_MALFORMED);
	server_stop(&server);
}
END_TEST

/* The text of the refusal that a server of this build sends to a client of that build; "" for a challenge. */
static const char *answer_to_build(rc_server_t place, const struct door_build *build)
{
	static struct door_refusal refusal;
	struct door_hello hello = good_hello();
	hello.build = *build;
	int fd = connect_raw(place);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), (ssize_t)sizeof hello);
	ck_assert_int_eq(recv(fd, &refusal.header, sizeof refusal.header, MSG_WAITALL), (ssize_t)sizeof refusal.header);
	size_t rest = refusal.header.length - sizeof refusal.header;
	ck_assert_uint_le(rest, sizeof refusal - sizeof refusal.header);
	ck_assert_int_eq(recv(fd, &refusal.reason, rest, MSG_WAITALL), (ssize_t)rest);
	close(fd);
	if (refusal.header.kind == DOOR_CHALLENGE)
		return "";
	ck_assert_uint_eq(refusal.header.kind, DOOR_REFUSAL);
	ck_assert_uint_eq(refusal.reason, RC_DOOR_BAD_VERSION);
	return refusal.text;
}

START_TEST(a_client_with_other_messages_is_refused_with_the_difference)
{
	struct test_server server;
	struct door_build build = door_build;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_str_eq(answer_to_build(server.place, &build), "");
	build.calls++;
	build.structs++; /* the client asks for the list of calls */
	ck_assert_str_eq(answer_to_build(server.place, &build), "");
	build = door_build;
	build.wire++;
	ck_assert_str_eq(answer_to_build(server.place, &build),
			 "builds differ: wire headers; install the same build of Headrace on both hosts");
	build = door_build;
	build.cuda = 12080;
	ck_assert_ptr_nonnull(strstr(answer_to_build(server.place, &build), ", client 12.8)"));
	build = (struct door_build){ 0, 0, 0, 0 };
	ck_assert_ptr_nonnull(strstr(answer_to_build(server.place, &build), "on both hosts")); /* the longest text fits */
	server_stop(&server);
}
END_TEST

/* The first call of this kind; the generated list has both kinds. */
static uint32_t first_call(bool needed)
{
	uint32_t i = 0;
	while (i < door_call_count && door_call_list[i].needed != needed)
		i++;
	ck_assert_uint_lt(i, door_call_count);
	return i;
}

START_TEST(calls_are_found_under_other_numbers)
{
	struct door_calls theirs, ours;
	uint16_t numbers[RC_DOOR_CALLS_MAX];
	char text[RC_DOOR_TEXT_MAX];
	door_calls_fill(&ours);
	theirs = ours;
	for (uint32_t i = 0; i < door_call_count; i++)
		theirs.hash[i] = ours.hash[door_call_count - 1 - i];
	ck_assert_int_eq(door_calls_match(&theirs, numbers, text), 0);
	for (uint32_t n = 1; n <= door_call_count; n++)
		ck_assert_uint_eq(numbers[n], door_call_count + 1 - n);
	theirs.count = 0;
	ck_assert_int_eq(door_calls_match(&theirs, numbers, text), -EPROTONOSUPPORT);
	theirs = ours;
	theirs.count = RC_DOOR_CALLS_MAX;
	memset(theirs.hash + ours.count, 0xff, sizeof theirs.hash - ours.count * sizeof *theirs.hash);
	ck_assert_int_eq(door_calls_match(&theirs, numbers, text), 0);
}
END_TEST

START_TEST(a_call_that_differs_is_named)
{
	struct door_calls theirs;
	uint16_t numbers[RC_DOOR_CALLS_MAX];
	char text[RC_DOOR_TEXT_MAX];
	uint32_t optional = first_call(false), needed = first_call(true);
	door_calls_fill(&theirs);
	theirs.hash[optional] ^= 1;
	ck_assert_int_eq(door_calls_match(&theirs, numbers, text), 1);
	ck_assert_ptr_nonnull(strstr(text, door_call_list[optional].name));
	ck_assert_uint_eq(numbers[optional + 1], 0);
	ck_assert_uint_eq(numbers[needed + 1], needed + 1);
	theirs.hash[needed] ^= 1;
	ck_assert_int_eq(door_calls_match(&theirs, numbers, text), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(text, door_call_list[needed].name));
}
END_TEST

START_TEST(each_call_has_a_hash_of_its_own)
{
	for (uint32_t i = 0; i < door_call_count; i++)
		for (uint32_t j = 0; j < i; j++)
			ck_assert_msg(door_call_list[i].hash != door_call_list[j].hash, "%s and %s", door_call_list[i].name,
				      door_call_list[j].name);
}
END_TEST

/* Goes through the door by hand with this request. */
static unsigned refusal_of_request(rc_server_t place, struct door_request *request)
{
	struct door_hello hello = good_hello();
	struct door_challenge challenge;
	struct door_refusal refusal;
	int fd = connect_raw(place);
	door_header_set(&request->header, DOOR_REQUEST, sizeof *request);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, 0), sizeof hello);
	ck_assert_int_eq(recv(fd, &challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
	ck_assert_int_eq(send(fd, request, sizeof *request, 0), sizeof *request);
	ssize_t n = recv(fd, &refusal, sizeof refusal, MSG_WAITALL);
	close(fd);
	return n == sizeof refusal && refusal.header.kind == DOOR_REFUSAL ? refusal.reason : 0;
}

START_TEST(wrong_requests_are_refused_with_the_reason)
{
	struct test_server server;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ 0 }), RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_HANDLE + 1 }),
			  RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_NEW }),
			  RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_NEW,
										   .card_len = HR_CARD_MAX + 1 }),
			  RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_STATUS,
										   .card_len = 8 }),
			  RC_DOOR_MALFORMED);
	ck_assert_int_eq(server.last.fd, 0);
	server_stop(&server);
}
END_TEST

START_TEST(random_bytes_neither_enter_nor_harm)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	unsigned state = 1;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	for (int round = 0; round < 500; round++) {
		uint8_t bytes[700];
		size_t size = (size_t)rand_r(&state) % sizeof bytes;
		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)rand_r(&state);
		/* Half of them begin as a hello does. */
		if (round % 2 && size >= sizeof(struct door_header))
			door_header_set((struct door_header *)(void *)bytes, DOOR_HELLO, sizeof(struct door_hello));
		int fd = connect_raw(server.place);
		(void)!send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
	ck_assert_int_eq(server.last.fd, 0);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* Descriptors that this process has open. */
static int count_descriptors(void)
{
	int n = 0;
	DIR *list = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(list);
	for (const struct dirent *entry; (entry = readdir(list));)
		n += entry->d_name[0] != '.';
	closedir(list);
	return n - 1; /* the list's own */
}

/* The next descriptor that the kernel will give out. */
static int free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

START_TEST(clients_that_stall_delay_no_other)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	struct door_hello hello = good_hello();
	int idle[20];
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	for (int i = 0; i < 20; i++) {
		idle[i] = connect_raw(server.place);
		/* Nothing, half a hello, or a whole one and then nothing. */
		size_t size = i % 3 * sizeof hello / 2;
		ck_assert_int_eq(send(idle[i], &hello, size, 0), (ssize_t)size);
	}
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	for (int i = 0; i < 20; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

START_TEST(places_at_the_door_are_limited_and_come_free)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	int idle[2];
	char byte;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ .max_handshakes = 4, .timeout_ms = 300 });
	for (int i = 0; i < 2; i++)
		idle[i] = connect_raw(server.place);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), -EBUSY);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(recv(idle[i], &byte, 1, 0), 0);
		close(idle[i]);
	}
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* A connection from that address of loopback that says nothing. */
static int stall_from(const char *from, rc_server_t place)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(inet_pton(AF_INET, from, &own.sin_addr), 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

START_TEST(a_flood_from_two_addresses_leaves_local_users_able_to_enter)
{
	rc_server_t places[2] = { tcp_place(), unix_place("a") };
	struct test_server server;
	rc_door_welcome_t welcome;
	int idle[24];
	server_start_at(&server, places, 2, &(rc_door_policy_t){ .max_handshakes = 8, .timeout_ms = 60000 });
	for (int i = 0; i < 24; i++)
		idle[i] = stall_from(i % 2 ? "127.0.0.1" : "127.0.0.2", places[0]);
	/* The last of each address are refused, so all places that the flood can have are taken. */
	for (int i = 22; i < 24; i++) {
		char bytes[sizeof(struct door_refusal)];
		ck_assert_int_eq(recv(idle[i], bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
	}
	ck_assert_int_eq(client_connect(places[1], RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert_int_eq(client_connect(places[1], RC_DOOR_STATUS, NULL, &welcome), 0);
	for (int i = 0; i < 24; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

START_TEST(a_server_out_of_descriptors_says_so)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	struct rlimit limit, tight;
	int idle[3];
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	int before = count_descriptors();
	for (int i = 0; i < 3; i++)
		idle[i] = connect_raw(server.place);
	while (count_descriptors() < before + 6) /* at both ends: the server is a thread of this process */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Room for this side's socket, and for none at the server's. */
	tight = limit;
	tight.rlim_cur = (rlim_t)free_descriptor() + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), -EBUSY);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	for (int i = 0; i < 3; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

void add_bad_clients(TCase *tests)
{
	tcase_add_test(tests, wrong_hellos_are_refused_with_the_reason);
	tcase_add_test(tests, a_client_with_other_messages_is_refused_with_the_difference);
	tcase_add_test(tests, calls_are_found_under_other_numbers);
	tcase_add_test(tests, a_call_that_differs_is_named);
	tcase_add_test(tests, each_call_has_a_hash_of_its_own);
	tcase_add_test(tests, wrong_requests_are_refused_with_the_reason);
	tcase_add_test(tests, random_bytes_neither_enter_nor_harm);
	tcase_add_test(tests, clients_that_stall_delay_no_other);
	tcase_add_test(tests, places_at_the_door_are_limited_and_come_free);
	tcase_add_test(tests, a_flood_from_two_addresses_leaves_local_users_able_to_enter);
	tcase_add_test(tests, a_server_out_of_descriptors_says_so);
}
