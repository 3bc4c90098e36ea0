/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake's messages. Little-endian, as every machine that CUDA runs on. The header and REFUSAL never change, so
 * that each version can tell any other which version it has. Reserved bytes are sent as 0 and ignored.
 */
#ifndef RC_DOOR_WIRE_H
#define RC_DOOR_WIRE_H

#include "cuda_remote/door/door.h"

#define DOOR_MAGIC "HRDOOR1\n"
#define DOOR_NONCE_BYTES 32
#define DOOR_EXCHANGE_BYTES 32
#define DOOR_CREDENTIAL_BYTES 1024

/*
 * What a client and a server must have in common to understand each other after the handshake. build.py makes it. The
 * members cuda and wire must be equal. If calls or structs differ, the client asks for the server's list of calls, and
 * uses those that both have. The comments, hooks and hand-written code of the two may differ.
 */
struct door_build {
	uint32_t calls;   /* hash of the table of calls: numbers, modes, arguments and their widths */
	uint32_t cuda;    /* CUDA_VERSION of the headers */
	uint32_t structs; /* hash of the sizes of CUDA's structs that are sent */
	uint32_t wire;    /* hash of the headers that define messages, without their comments */
};
extern const struct door_build door_build;

/* False if the two builds may work together. True: text names the differences and the remedy. */
bool door_build_differs(const struct door_build *client, const struct door_build *server, char text[RC_DOOR_TEXT_MAX]);

/* True if the tables of calls differ, so that door_calls_match must tell what the two have in common. */
bool door_calls_differ(const struct door_build *client, const struct door_build *server);

/* The calls of this build: element i is call number i + 1. build.py makes the list. */
struct door_call {
	uint64_t hash;    /* of its name, mode, arguments, and the sizes of the structs that it sends */
	const char *name;
	bool needed;      /* no program works without it: a call of Headrace's own, not of CUDA */
};
extern const struct door_call door_call_list[];
extern const uint32_t door_call_count;

enum door_kind { DOOR_HELLO = 1, DOOR_CHALLENGE = 2, DOOR_REQUEST = 3, DOOR_WELCOME = 4, DOOR_REFUSAL = 5,
		 DOOR_REPORT = 6,
		 DOOR_CALLS = 7 };

/* How the client authenticates itself. */
enum door_method {
	DOOR_BY_USER = 1, /* by its user, whom the kernel has named to the server; it sends no proof */
	DOOR_BY_KEY = 2,  /* by a proof that it has the key */
	DOOR_BY_MUNGE = 3, /* by a credential of MUNGE, and a proof that it has the credential's secret */
};

/* Flags of a hello and of a challenge. */
enum door_flag {
	DOOR_CAN_ENCRYPT = 1, /* hello: public_key is valid */
	DOOR_ENCRYPT = 2,     /* hello: the client demands encryption; challenge: the channel will be encrypted */
	DOOR_WANT_KEY = 4,    /* hello: the client demands a proof of the key over a Unix socket too */
	DOOR_WANT_MUNGE = 8,  /* hello: the client authenticates itself by MUNGE, and in no other way */
};

struct door_header {
	uint8_t magic[8]; /* DOOR_MAGIC */
	uint16_t version; /* RC_DOOR_VERSION of the sender */
	uint16_t kind;    /* enum door_kind */
	uint32_t length;  /* bytes of the whole message, the header included */
};

/* client → server */
struct door_hello {
	struct door_header header;
	uint8_t nonce[DOOR_NONCE_BYTES]; /* fresh */
	struct door_build build;         /* of the client */
	uint32_t flags;                  /* set of enum door_flag */
	uint8_t reserved[12];
	uint8_t public_key[DOOR_EXCHANGE_BYTES]; /* CAN_ENCRYPT: X25519, fresh */
};

/* server → client */
struct door_challenge {
	struct door_header header;
	uint8_t nonce[DOOR_NONCE_BYTES]; /* fresh */
	uint32_t method;                 /* enum door_method */
	uint32_t flags;                  /* set of enum door_flag */
	uint32_t uid;                    /* BY_MUNGE: the daemon's user, who alone can decode the credential */
	uint8_t reserved[4];
	struct door_build build;         /* of the server */
	uint8_t public_key[DOOR_EXCHANGE_BYTES]; /* ENCRYPT: X25519, fresh */
};

/* client → server */
struct door_request {
	struct door_header header;
	uint32_t purpose; /* enum rc_door_purpose */
	uint32_t gpu;     /* NEW: index or RC_SERVER_ALL_GPUS */
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* JOIN, MEMORY, HANDLE */
	uint32_t card_len; /* NEW, JOIN; else 0 */
	uint32_t send_calls; /* NEW: 1: the client wants struct door_calls after the welcome */
	uint8_t card[HR_CARD_MAX];
	char program[RC_DOOR_PROGRAM_MAX]; /* NEW: the name of the client's program, as text for users */
	char credential[DOOR_CREDENTIAL_BYTES]; /* BY_MUNGE: NUL-terminated */
	uint8_t proof[RC_DOOR_KEY_BYTES]; /* BY_KEY, BY_MUNGE: see door_proofs() */
};

/* server → client */
struct door_welcome {
	struct door_header header;
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* NEW: the session's; else 0 */
	uint32_t gpus, clients, workers;
	uint32_t card_len; /* 0 for STATUS */
	uint8_t card[HR_CARD_MAX];
	char text[RC_DOOR_TEXT_MAX]; /* NUL-terminated */
	uint8_t proof[RC_DOOR_KEY_BYTES]; /* BY_KEY, BY_MUNGE: hash of the message up to here, keyed by the seal */
};

/* server → client, after the welcome of a REPORT; count entries follow */
struct door_report {
	struct door_header header; /* length: the entries included */
	uint32_t count, hidden;    /* as in rc_door_report_t */
	uint8_t reserved[8];
	uint8_t proof[RC_DOOR_KEY_BYTES]; /* BY_KEY, BY_MUNGE: hash of the whole message with proof 0, keyed by the seal */
	struct rc_counters counters;
};

/* server → client, after the welcome of a NEW with send_calls */
struct door_calls {
	struct door_header header;
	uint32_t count; /* of hash */
	uint32_t reserved;
	uint8_t proof[RC_DOOR_KEY_BYTES]; /* BY_KEY, BY_MUNGE: hash of the whole message with proof 0, keyed by the seal */
	uint64_t hash[RC_DOOR_CALLS_MAX]; /* of the server's calls, in the order of their numbers */
};

/* Fills in the message, without its proof. */
void door_calls_fill(struct door_calls *message);

/*
 * Compares this build's calls with the other side's: numbers[n] is the other side's number of this build's call n, 0 if it
 * has no such call. Returns the count of calls that the other side lacks; -EPROTONOSUPPORT: a needed one. text says so.
 * theirs->count is at most RC_DOOR_CALLS_MAX.
 */
int door_calls_match(const struct door_calls *theirs, uint16_t numbers[RC_DOOR_CALLS_MAX], char text[RC_DOOR_TEXT_MAX]);

struct door_session {
	uint64_t number, age_us, calls, memory, cpu_us;
	uint32_t uid, gpu;
	char program[RC_DOOR_PROGRAM_MAX]; /* NUL-terminated */
	char client[80];                   /* NUL-terminated */
};

/* server → client, instead of a challenge or a welcome; the last message */
struct door_refusal {
	struct door_header header;
	uint32_t reason; /* enum rc_door_reason */
	uint32_t reserved;
	char text[RC_DOOR_TEXT_MAX]; /* NUL-terminated */
};

_Static_assert(sizeof(struct door_header) == 16, "wire");
_Static_assert(sizeof(struct door_hello) == 112, "wire");
_Static_assert(sizeof(struct door_challenge) == 112, "wire");
_Static_assert(sizeof(struct door_request) == 1392, "wire");
_Static_assert(sizeof(struct door_welcome) == 496, "wire");
_Static_assert(sizeof(struct door_refusal) == 184, "wire");
_Static_assert(sizeof(struct door_report) == 64 + sizeof(struct rc_counters), "wire");
_Static_assert(sizeof(struct door_calls) == 56 + 8 * RC_DOOR_CALLS_MAX, "wire");
_Static_assert(sizeof(struct door_session) == 160, "wire");

/* Fills in a header. */
void door_header_set(struct door_header *header, enum door_kind kind, size_t length);

/* True if a request of this purpose opens a channel. */
bool door_has_card(uint32_t purpose);

/* Makes a text from the other side safe for a terminal: terminates it by NUL and replaces control characters. */
void door_text_clean(char *text, size_t size);

#endif
