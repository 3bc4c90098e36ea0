/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The door: the handshake between a client and a server. The client opens a stream socket (TCP or Unix); both sides name
 * their protocol version and build, authenticate each other and exchange channel cards. Then the same socket goes to
 * the channel as its wire-up socket (hr_connect_attr_t.fd). The messages are in wire.h, the sequence is:
 *
 *	client                          server
 *	HELLO  version, nonce,   →
 *	       public key
 *	                         ←      CHALLENGE  method, nonce, public key        (or REFUSAL)
 *	REQUEST  purpose, card,  →
 *	         proof
 *	                         ←      WELCOME  session, card, proof               (or REFUSAL)
 *
 * Who may enter. Over a Unix socket the kernel names the other side's user; over loopback TCP it does so as well (the
 * owner of the peer's socket, asked for by sock_diag). Server and client trust each other there if they are the same
 * user or the other is root; a root server takes every user, and its worker becomes that user. A server with a key file
 * asks every TCP client for the key; over any other network address the key is the only way in. A client with a key
 * file demands over every TCP address, loopback too, that the server proves the key: the port may be a forwarder's.
 * Proofs are keyed hashes over all messages before them, nonces of both sides included: the key never crosses the
 * wire, a replayed proof is worth nothing, and client and server both prove the key.
 *
 * Encryption. HELLO and CHALLENGE carry fresh X25519 public keys. If either side demands encryption, the channel behind
 * the door is given keys derived from that exchange, the whole handshake and the key file's key (hr_connect_attr_t.
 * cipher): who records the traffic and gets the key file later reads nothing. The handshake itself, and the reports
 * for STATUS and REPORT, are authenticated but in the clear. Unix sockets do not leave the kernel and are not encrypted.
 * docs/SECURITY.md says what each side can and cannot do, and which test shows it.
 *
 * Returns: 0 on success, a negated errno value on failure; outputs come last and are set only on success.
 */
#ifndef RC_DOOR_H
#define RC_DOOR_H

#include "cuda_remote/door/server_name.h"
#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RC_DOOR_VERSION 2      /* of the door and of all that follows it: one number for client and server */
#define RC_DOOR_TOKEN_BYTES 16
#define RC_DOOR_KEY_BYTES 32
#define RC_DOOR_KEY_ID_BYTES 8
#define RC_DOOR_SOURCE_BYTES 16
#define RC_DOOR_TEXT_MAX 160   /* bytes of a refusal's or a welcome's text, NUL included */
#define RC_DOOR_PROGRAM_MAX 32 /* bytes of a program's name, NUL included */
#define RC_DOOR_SESSIONS_MAX 256 /* sessions of one report */

enum rc_door_purpose {
	RC_DOOR_NEW = 1,    /* a new client: a worker of its own */
	RC_DOOR_JOIN = 2,   /* one more connection (thread) of the client that holds the token */
	RC_DOOR_STATUS = 3, /* what is there: no worker, no card; the welcome's text and counts only */
	RC_DOOR_REPORT = 4, /* as STATUS, and the sessions that this client may see follow the welcome */
};

/* Why a client is turned away; on the wire as its number, so only ever append. */
enum rc_door_reason {
	RC_DOOR_BAD_VERSION = 1, /* the server speaks another protocol version: -EPROTONOSUPPORT at the client */
	RC_DOOR_DENIED = 2,      /* wrong key, no key, another user: -EACCES */
	RC_DOOR_NO_GPU = 3,      /* no GPU of that index, or none at all: -ENODEV */
	RC_DOOR_NO_SESSION = 4,  /* join: no such session, or it has ended: -ESRCH */
	RC_DOOR_BUSY = 5,        /* too many clients, or no worker in time: -EBUSY */
	RC_DOOR_MALFORMED = 6,   /* not what the protocol says: -EPROTO */
	RC_DOOR_FAILED = 7,      /* the server could not do it; its text says why: -EIO */
	RC_DOOR_ENCRYPTION = 8,  /* one side demands encryption and the other cannot: -EOPNOTSUPP */
};

/* One session of a report. */
typedef struct rc_door_session {
	uint64_t number;   /* the same in every report of this server */
	uint64_t age_us;   /* since it began */
	uint64_t calls;    /* CUDA calls served */
	uint64_t memory;   /* bytes of device memory allocated */
	uint32_t uid;      /* UINT32_MAX: the client came by key */
	uint32_t gpu;      /* index or RC_SERVER_ALL_GPUS */
	char program[RC_DOOR_PROGRAM_MAX]; /* as the client named itself: not verified */
	char client[80];   /* "unix:pid 12", "10.0.0.2:4711" */
} rc_door_session_t;

typedef struct rc_door_key {
	uint8_t bytes[RC_DOOR_KEY_BYTES];
} rc_door_key_t;

/* True if this build can use key files (libsodium was found). */
bool rc_door_keys_supported(void);

/* Reads a key file. -EPERM: others than the owner could read it, or the owner is neither this user nor root;
 * -EINVAL: not a key file; -ENOTSUP: no key support in this build; else as open(2). Logged. */
int rc_door_key_load(const char *path, rc_door_key_t *key);

/* Writes a new random key to path, mode 0600. -EEXIST: there is a file already; -ENOTSUP. Logged. */
int rc_door_key_make(const char *path);

/* ---- the client's side; any thread, nothing shared ---- */

typedef struct rc_door_connect {
	rc_server_t server; /* gpu: checked by the server at NEW; the client does the mapping of indexes itself */
	enum rc_door_purpose purpose;
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* JOIN: the welcome's of this process's NEW */
	const hr_card_t *card;      /* NEW, JOIN: this connection's channel */
	const char *key_file;       /* NULL: HEADRACE_KEY_FILE, where set */
	bool encrypt;               /* demand encryption over TCP; false: as HEADRACE_ENCRYPT says */
	uint32_t timeout_ms;        /* of the whole handshake; 0: HEADRACE_CONNECT_TIMEOUT_MS */
} rc_door_connect_t;

typedef struct rc_door_welcome {
	int fd;                     /* the caller's: hand it to hr_channel_connect; blocking mode, close-on-exec */
	uint8_t token[RC_DOOR_TOKEN_BYTES];
	hr_card_t card;             /* NEW, JOIN: the worker's channel for this connection; len 0 for STATUS */
	uint32_t gpus;              /* GPUs that the server has */
	uint32_t clients, workers;  /* STATUS: being served; standing ready */
	char text[RC_DOOR_TEXT_MAX]; /* the server's version and driver, for people */
	bool encrypted;             /* the caller gives cipher to hr_channel_connect, and wipes it */
	hr_cipher_keys_t cipher;
	bool local;                 /* over a Unix socket: same host, shared memory can be used */
} rc_door_welcome_t;

/*
 * Connects to a server and does the handshake. Blocks until welcome, refusal or time-out (finding a host's address takes
 * what the resolver takes). The reason of a failure is logged once, in words. Beside the refusals' codes above: -ECONNREFUSED, -ENOENT
 * (no server there), -EHOSTUNREACH and what else connect(2) says; -ENXIO: no such host; -ETIMEDOUT; -EKEYREJECTED:
 * the server did not prove that it has the key, or runs as a user whom the client does not trust.
 */
int rc_door_connect(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome);

typedef struct rc_door_report {
	uint32_t count;    /* in session[] */
	uint32_t hidden;   /* sessions that this client may not see, or that found no room */
	rc_door_session_t session[RC_DOOR_SESSIONS_MAX];
} rc_door_report_t;

/* Connects with the purpose RC_DOOR_REPORT and reads the report; welcome->fd is closed and -1. Fails as rc_door_connect. */
int rc_door_ask_report(const rc_door_connect_t *server, rc_door_welcome_t *welcome, rc_door_report_t *report);

/* ---- the server's side: one thread; only rc_door_peer_* block, and these never for long ---- */

typedef struct rc_door rc_door_t;

typedef struct rc_door_policy {
	bool have_key;
	rc_door_key_t key;
	bool encrypt;           /* demand it of every TCP client */
	bool own_user_only;     /* over Unix sockets and loopback: nobody else, not even where this is root */
	uint32_t max_handshakes; /* at a time over Unix sockets, and as many again over TCP. 0: 256 */
	uint32_t timeout_ms;     /* of one handshake. 0: 5000 */
} rc_door_policy_t;

/* An authenticated client and its request, which the server has still to answer. Flat: goes to the worker as it is, by
 * SCM_RIGHTS. */
typedef struct rc_door_peer {
	int fd;                  /* in another process: what SCM_RIGHTS made of it */
	enum rc_door_purpose purpose;
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* JOIN: as sent; NEW: drawn by the daemon */
	uint32_t gpu;            /* index or RC_SERVER_ALL_GPUS */
	hr_card_t card;          /* of the client's channel; len 0 for STATUS */
	uid_t uid;               /* (uid_t)-1: came by key, unknown */
	bool by_key, local;      /* local: Unix socket */
	/* For limits: whom to count the peer against (its user where it is on this host, else its address), and which
	 * key it came by (a fingerprint that does not give the key away; 0 where it came without). Compare bytes. */
	uint8_t source[RC_DOOR_SOURCE_BYTES];
	uint8_t key_id[RC_DOOR_KEY_ID_BYTES];
	pid_t pid;               /* over a Unix socket, else 0 */
	char program[RC_DOOR_PROGRAM_MAX]; /* NEW: as the client names itself; fit for a terminal */
	char name[80];           /* for messages: "unix:pid 12", "10.0.0.2:4711" */
	bool encrypted;          /* the process that connects the channel gives cipher to it, and wipes it */
	hr_cipher_keys_t cipher;
	uint8_t seal[RC_DOOR_KEY_BYTES]; /* by_key: what the welcome is proved with; good for this handshake only */
} rc_door_peer_t;

int rc_door_open(const rc_door_policy_t *policy, rc_door_t **door);
void rc_door_close(rc_door_t *door); /* NULL is allowed; socket files of its own are removed */

/*
 * Listens at a place. A socket file of a daemon that is gone is replaced; one where somebody answers is -EADDRINUSE.
 * -EPERM: a network address beyond loopback and no key. Logged.
 */
int rc_door_listen(rc_door_t *door, const rc_server_t *place);

/* Closes the door's descriptors and forgets the key without touching anybody else's end: for a process forked from
 * the server. */
void rc_door_abandon(rc_door_t *door);

/* Polls readable when rc_door_next may have something to do; the time after which it wants to be called anyway
 * (-1: none), for poll(2). */
int rc_door_fd(const rc_door_t *door);
int rc_door_timeout(const rc_door_t *door);

/* Continues the handshakes. 1: *peer has authenticated itself, and its descriptor is the caller's; 0: none now. */
int rc_door_next(rc_door_t *door, rc_door_peer_t *peer);

/* Sends the welcome; leaves the descriptor open (it goes to hr_channel_connect next), clears O_NONBLOCK. Called by
 * the worker for NEW and JOIN with its channel's card, by the daemon for STATUS (card NULL). -EPIPE and the like:
 * the peer is gone. */
int rc_door_peer_welcome(const rc_door_peer_t *peer, const hr_card_t *card, uint32_t gpus, uint32_t clients,
			  uint32_t workers, const char *text);

/* Sends the report behind the welcome of a RC_DOOR_REPORT request. Never blocks; -EPIPE: it found no room in the socket. */
int rc_door_peer_report(const rc_door_peer_t *peer, const rc_door_report_t *report);

/* Passes a peer with its descriptor on to another process, one message over a SOCK_SEQPACKET socket. The sender
 * keeps its own descriptor. receive: 1: a peer; 0: the other side closed the socket; -EAGAIN on a non-blocking one;
 * -EMFILE: a peer came, and this process has no descriptor left for it: the peer's connection is closed. */
int rc_door_peer_send(int socket, const rc_door_peer_t *peer);
int rc_door_peer_receive(int socket, rc_door_peer_t *peer);

/* Sends the reason of a refusal and closes its descriptor. */
void rc_door_peer_refuse(const rc_door_peer_t *peer, enum rc_door_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
