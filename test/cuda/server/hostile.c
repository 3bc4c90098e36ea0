/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile client: hostile SECONDS SEED. Opens session after session; each begins as a client of ours would (hello, a
 * module, memory) and goes on with a stream of valid messages, some of them mutated: bits flipped, words replaced, messages
 * cut, lengthened, dropped, sent twice or out of order. The worker may refuse, or close the connection.
 * Prints how many sessions, messages and mutations there were. Fails if a session cannot be opened.
 */
#include "test/cuda/server/raw_client.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES 64

struct message {
	unsigned type;
	uint8_t header[CH3_HEADER_MAX];
	size_t header_len;
	uint8_t payload[2048];
	size_t len;
};

static raw_t raw, second;
static uint64_t number, state;
static uint32_t context;
static uint64_t module, kernel, memory, conditionals, condition, sessions, sent, mutated;

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry fill(.param .u64 data, .param .u32 value) {\n"
	"	.reg .b64 p, o; .reg .b32 t, v;\n"
	"	ld.param.u64 p, [data]; ld.param.u32 v, [value]; cvta.to.global.u64 p, p;\n"
	"	mov.u32 t, %tid.x; mul.wide.u32 o, t, 4; add.u64 p, p, o; st.global.u32 [p], v;\n"
	"	ret;\n}\n";

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* ---- valid messages ---- */

static void call(struct message *to, enum rc_call function, const void *fixed, size_t fixed_len, const void *more, size_t len)
{
	struct rc_wire_call head = { .number = ++number, .function = (uint16_t)function, .context = context,
				     .flags = rc_call_waits[function] ? RC_CALL_WAIT : 0 };
	to->type = RC_PACKET_CALL;
	to->header_len = sizeof head + fixed_len;
	memcpy(to->header, &head, sizeof head);
	memcpy(to->header + sizeof head, fixed, fixed_len);
	to->len = len;
	memcpy(to->payload, more, len);
}

static uint64_t handle(enum rc_kind kind)
{
	return rc_handle_make(kind, 10 + (uint32_t)kind * 4 + (uint32_t)draw(4), 1);
}

static void launch(struct message *to)
{
	struct {
		uint64_t data;
		uint32_t value;
	} __attribute__((packed)) parameters = { memory, 7 };
	struct rc_wire_launch args = { .function = kernel, .grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .parameters = sizeof parameters };
	call(to, RC_CALL_launch, &args, sizeof args, &parameters, sizeof parameters);
}

static void copy(struct message *to)
{
	struct rc_wire_copy args = { .box = { memory, 64, 64, 64, 8, 1 } };
	uint8_t bytes[512] = { 1 };
	switch (draw(5)) {
	case 4: args.copy = 1 + draw(4), call(to, RC_CALL_copy_up_later, &args, sizeof args, bytes, 0); break;
	case 0: call(to, RC_CALL_copy_up, &args, sizeof args, bytes, sizeof bytes); break;
	case 1: args.copy = 1 + draw(4), call(to, RC_CALL_copy_down, &args, sizeof args, bytes, 0); break;
	case 2: args.copy = 1 + draw(4), call(to, RC_CALL_copy_down_later, &args, sizeof args, bytes, 0); break;
	default: args.copy = 1 + draw(4), args.staged = draw(4) == 0, call(to, RC_CALL_copy_up, &args, sizeof args, bytes, 0);
	}
}

static void chunk(struct message *to)
{
	struct rc_wire_chunk wire = { 1 + draw(4), 512 * draw(3) };
	to->type = RC_PACKET_CHUNK;
	to->header_len = sizeof wire;
	memcpy(to->header, &wire, sizeof wire);
	to->len = 512;
	memset(to->payload, 3, to->len);
}

/* A chunk in a staging area, or how many chunks have left their slots. */
static void staged(struct message *to)
{
	struct rc_wire_staged wire = { 1 + draw(4), 512 * draw(3), 512 };
	struct rc_wire_credit credit = { draw(3), draw(2) };
	bool chunks = draw(2);
	to->type = chunks ? RC_PACKET_STAGED : RC_PACKET_CREDIT + (unsigned)draw(2);
	to->header_len = chunks ? sizeof wire : sizeof credit;
	memcpy(to->header, chunks ? (void *)&wire : (void *)&credit, to->header_len);
	to->len = 0;
}

static void load(struct message *to)
{
	struct rc_wire_load args = { .handle = handle(RC_KIND_MODULE), .image = sizeof ptx, .log_error = 256, .library = (uint16_t)draw(2) };
	call(to, RC_CALL_module_load, &args, sizeof args, ptx, sizeof ptx);
}

static void host_function(struct message *to)
{
	struct rc_wire_host_function args = { .function = 5, .callback = (uint32_t)draw(2) };
	call(to, RC_CALL_host_function, &args, sizeof args, "", 0);
}

/* A graph of a kernel, a copy between device and host, a fill and a graph within it. */
static void graph_instantiate(struct message *to)
{
	struct {
		struct rc_wire_graph graph;
		struct rc_wire_node kernel_node;
		struct rc_wire_graph_kernel kernel;
		uint64_t parameters[2];
		struct rc_wire_node copy_node;
		struct rc_wire_graph_copy copy;
		struct rc_wire_node child_node;
		struct rc_wire_graph child;
		struct rc_wire_node fill_node;
		struct rc_wire_graph_fill fill;
		struct rc_wire_node wait_node;
		uint64_t operations;
		struct rc_wire_memop operation[2];
		struct rc_wire_graph_edge edge[2];
	} graph = {
		.graph = { 4, 2 }, .edge = { { 0, 1, { 0 } }, { 1, 2, { 0 } } },
		.kernel_node = { .type = CU_GRAPH_NODE_TYPE_KERNEL },
		.kernel = { .function = kernel, .grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .parameters = 12 },
		.parameters = { memory, 7 },
		.copy_node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .flags = (uint32_t)draw(2) },
		.wait_node = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP }, .operations = 2,
		.operation = { { CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, memory, 1, draw(8) ? 0 : handle(RC_KIND_PINNED) },
			       { CU_STREAM_MEM_OP_WAIT_VALUE_64, CU_STREAM_WAIT_VALUE_GEQ, memory + 8, 0, 0 } },
		.copy = { .width = 64, .height = 1 + draw(2), .depth = 1, .function = 9, .kind = (uint32_t)draw(3),
			  .to = { .address = memory },
			  .from = { draw(8) ? 0 : handle(draw(2) ? RC_KIND_PINNED : RC_KIND_ARRAY), memory + 4096, 0, 0, 0, 0, 0 } },
		.child_node = { .type = CU_GRAPH_NODE_TYPE_GRAPH }, .child = { 1, 0 },
		.fill_node = { .type = CU_GRAPH_NODE_TYPE_MEMSET },
		.fill = { .to = memory, .width = 16, .height = 1, .value = 3, .element = 4 },
	};
	struct rc_wire_graph_new args = { handle(RC_KIND_GRAPH_EXEC), 0, draw(8) ? 0 : conditionals };
	call(to, RC_CALL_graph_instantiate, &args, sizeof args, &graph, sizeof graph);
}

/* A loop, or a choice, in a graph or instead of that of an executable graph; numbers for nodes follow the graph. */
static void graph_condition(struct message *to)
{
	struct {
		struct rc_wire_graph graph;
		struct rc_wire_node kernel_node;
		struct rc_wire_graph_kernel kernel;
		uint64_t parameters[2];
		struct rc_wire_node host_node;
		uint64_t function;
		struct rc_wire_node condition_node;
		struct rc_wire_graph_condition condition;
		struct rc_wire_graph first_body, second_body;
		struct rc_wire_node fill_node;
		struct rc_wire_graph_fill fill;
		struct rc_wire_graph_edge edge;
		uint32_t number[4];
	} graph = {
		.graph = { 3, 1 }, .edge = { 0, 2, { 0 } },
		.host_node = { .type = CU_GRAPH_NODE_TYPE_HOST }, .function = 9,
		.kernel_node = { .type = CU_GRAPH_NODE_TYPE_KERNEL },
		.kernel = { .function = kernel, .grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .parameters = 12 },
		.parameters = { memory, 7 },
		.condition_node = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL },
		.condition = { .number = condition, .type = draw(2) ? CU_GRAPH_COND_TYPE_IF : CU_GRAPH_COND_TYPE_SWITCH, .bodies = 2 },
		.second_body = { 1, 0 },
		.fill_node = { .type = CU_GRAPH_NODE_TYPE_MEMSET },
		.fill = { .to = memory, .width = 16, .height = 1, .value = 3, .element = 4 },
		.number = { 0, draw(8) ? 1 : (uint32_t)draw(5), 2, 3 },
	};
	struct rc_wire_graph_new args = { handle(RC_KIND_GRAPH_EXEC), 0, conditionals };
	bool update = draw(2);
	call(to, update ? RC_CALL_graph_update : RC_CALL_graph_instantiate, &args, sizeof args, &graph,
	     sizeof graph - (update ? 0 : sizeof graph.number));
}

/* One more conditional handle, or the end of those that there are. */
static void conditional(struct message *to)
{
	struct rc_wire_conditional args = { .conditionals = draw(2) ? conditionals : handle(RC_KIND_CONDITIONALS),
					    .context = handle(RC_KIND_CONTEXT), .value = 1, .flags = 1, .first = (uint32_t)draw(2) };
	if (draw(4))
		call(to, RC_CALL_graph_conditional, &args, sizeof args, "", 0);
	else
		call(to, RC_CALL_graph_conditionals_free, &args.conditionals, sizeof args.conditionals, "", 0);
}

/* A launch, a change of a node, or the end of an executable graph that there may be. */
static void graph_use(struct message *to)
{
	struct rc_wire_graph_launch launch = { handle(RC_KIND_GRAPH_EXEC), 0 };
	struct rc_wire_graph_change change = { launch.exec, (uint32_t)draw(5), 0 };
	struct {
		struct rc_wire_node node;
		struct rc_wire_graph_copy copy;
	} node = { { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .flags = (uint32_t)draw(2) },
		   { .width = 64, .height = 1, .depth = 1, .function = 9, .kind = (uint32_t)draw(3), .to = { .address = memory },
		     .from = { .address = memory + 64 } } };
	switch (draw(4)) {
	case 0: call(to, RC_CALL_graph_destroy, &launch.exec, sizeof launch.exec, "", 0); break;
	case 1: call(to, RC_CALL_graph_node, &change, sizeof change, &node, sizeof node); break;
	default: call(to, RC_CALL_graph_launch, &launch, sizeof launch, "", 0);
	}
}

static void host_done(struct message *to)
{
	to->type = RC_PACKET_HOST_DONE;
	to->header_len = sizeof raw.host;
	memcpy(to->header, &raw.host, sizeof raw.host);
	to->len = 0;
}

static void create(struct message *to)
{
	uint64_t args[2] = { handle(draw(2) ? RC_KIND_STREAM : RC_KIND_EVENT), 0 };
	enum rc_call made = args[0] >> 40 == RC_KIND_STREAM ? RC_CALL_cuStreamCreate : RC_CALL_cuEventCreate;
	call(to, made, args, 16, "", 0);
}

/* Any call with words for arguments: handles, the memory's address, small numbers. */
static void any(struct message *to)
{
	uint64_t words[14];
	for (size_t i = 0; i < 14; i++) {
		uint64_t likely[] = { memory, memory + draw(4096), 0, 1 + draw(64), handle(RC_KIND_STREAM), handle(RC_KIND_EVENT), module,
				      kernel, 1ull << draw(64) };
		words[i] = likely[draw(9)];
	}
	call(to, (enum rc_call)(1 + draw(RC_CALLS - 1)), words, 8 * draw(15), words, 8 * draw(15));
}

static void valid(struct message *to)
{
	static void (*const makers[])(struct message *) = { launch, launch, copy, copy, chunk, chunk, staged, load, host_function, host_done, create,
							    create, graph_instantiate, graph_use, graph_use, graph_condition, conditional, any, any, any };
	makers[draw(sizeof makers / sizeof makers[0])](to);
}

/* ---- mutations ---- */

static void mutate_bytes(uint8_t *bytes, size_t len)
{
	uint64_t words[] = { 0, UINT64_MAX, 1ull << draw(64), draw(4096), INT64_MIN };
	if (!len)
		return;
	if (draw(2) || len < 8)
		bytes[draw(len)] ^= (uint8_t)(1u << draw(8));
	else
		memcpy(bytes + draw(len - 7), &words[draw(5)], 8);
}

static void mutate(struct message *message)
{
	mutated++;
	switch (draw(6)) {
	case 0: message->header_len = draw(message->header_len + 1); break;
	case 1: message->len = draw(sizeof message->payload); break;
	case 2:
		if (draw(8) == 0)
			message->type = RC_PACKET_CALL + (unsigned)draw(10);
		break;
	case 3: mutate_bytes(message->payload, message->len); break;
	default:
		/* Seldom the head: a wrong number ends the session. */
		if (draw(6) == 0)
			mutate_bytes(message->header, message->header_len);
		else if (message->header_len > sizeof(struct rc_wire_call))
			mutate_bytes(message->header + sizeof(struct rc_wire_call), message->header_len - sizeof(struct rc_wire_call));
	}
}

static void put(const struct message *message)
{
	raw_t *on = second.vc && message->type == RC_PACKET_CALL && draw(4) == 0 ? &second : &raw;
	raw_packet(on, message->type, message->header, message->header_len, message->payload, message->len);
	sent++;
	/* Most callers wait for their answers; where nothing comes, go on. */
	for (int i = 0; i < 3 && !on->failed && draw(8); i++)
		raw_poll(on, 1);
}

/* ---- a session ---- */

static bool begin(void)
{
	uint64_t bytes = 1 << 20;
	number = 0;
	second.vc = NULL;
	if (raw_connect(&raw, NULL, RC_SERVER_ALL_GPUS))
		return false;
	context = raw_hello(&raw, ++number, 0, NULL);
	if (!context || raw_load(&raw, ++number, context, ptx, sizeof ptx, &module, &kernel) ||
	    raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &bytes, sizeof bytes, NULL, 0))
		return false;
	memcpy(&memory, raw.results, sizeof memory);
	conditionals = handle(RC_KIND_CONDITIONALS);
	struct rc_wire_conditional wanted = { conditionals, rc_handle_make(RC_KIND_CONTEXT, context, 1), 1, 1, 1, 0 };
	if (raw_call(&raw, ++number, RC_CALL_graph_conditional, context, &wanted, sizeof wanted, NULL, 0))
		return false;
	memcpy(&condition, raw.results, sizeof condition);
	if (draw(4) == 0 && raw_connect(&second, &raw, RC_SERVER_ALL_GPUS))
		return false;
	return true;
}

static void session(void)
{
	static struct message messages[MESSAGES];
	size_t n = 1 + draw(MESSAGES);
	bool mutating = draw(8) != 0;
	for (size_t i = 0; i < n; i++) {
		valid(&messages[i]);
		if (mutating && draw(6) == 0)
			mutate(&messages[i]);
	}
	for (size_t i = 0; i < n && !raw.failed; i++) {
		if (mutating && draw(100) == 0)
			continue; /* a gap: nothing behind it may be executed */
		if (mutating && draw(100) == 0)
			put(&messages[draw(n)]);
		put(&messages[i]);
	}
	sessions++;
	if (second.vc)
		raw_close(&second);
	raw_close(&raw);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	time_t until = time(NULL) + atoi(argv[1]);
	uint64_t seed = strtoull(argv[2], NULL, 10);
	for (uint64_t round = 1; time(NULL) < until; round++) {
		state = seed * 1000003 + round;
		if (!begin()) {
			fprintf(stderr, "seed %s, session %llu: the server takes no client any more\n", argv[2], (unsigned long long)round);
			return 1;
		}
		session();
	}
	printf("%llu sessions, %llu messages, %llu of them mutated\n", (unsigned long long)sessions, (unsigned long long)sent,
	       (unsigned long long)mutated);
	return 0;
}
