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
 * Authentication by user. Over a Unix socket the kernel names the other side's user. Over loopback TCP it does so as
 * well: sock_diag names the owner of the peer's socket. There, server and client trust each other if they are the same
 * user or the other is root. A root server serves every user, and its worker becomes that user.
 *
 * Authentication by key. A server with a key file asks every TCP client to prove that it has the key. Beyond loopback
 * the key is the only way to authenticate. A client with a key file demands the server's proof over every TCP address,
 * loopback too, as a forwarder may own the port. A proof is a keyed hash of all messages before it, with the nonces of
 * both sides. So the key is never sent, a replayed proof is invalid, and both sides prove that they have the key.
 *
 * Authentication by MUNGE. A client that is configured for it sends a credential of MUNGE, which tells the server the
 * client's user and a fresh secret. The secret takes the place of the key: the proofs and the encrypted channel's keys are
 * as above. A server accepts such clients if its configuration says so; it then serves them as users of its own host with
 * the same user number.
 *
 * Encryption. HELLO and CHALLENGE carry fresh X25519 public keys. If either side demands encryption, the channel gets
 * keys (hr_connect_attr_t.cipher) derived from that exchange, the whole handshake and the key file's key. An attacker
 * who records the traffic and gets the key file later cannot decrypt it. The handshake itself, and the answers to
 * STATUS and REPORT, are authenticated but not encrypted. Unix sockets do not leave the kernel and are not encrypted.
 * docs/SECURITY.md says what each side can and cannot do, and which test shows it.
 *
 * Returns: 0 on success, a negated errno value on failure; outputs come last and are set only on success.
 */
#ifndef RC_DOOR_H
#define RC_DOOR_H

#include "cuda_remote/door/counters.h"
#include "cuda_remote/door/server_name.h"
#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RC_DOOR_VERSION 15     /* of the handshake and of all messages after it; equal in client and server */
#define RC_DOOR_TOKEN_BYTES 16
#define RC_DOOR_KEY_BYTES 32
#define RC_DOOR_KEY_ID_BYTES 8
#define RC_DOOR_SOURCE_BYTES 16
#define RC_DOOR_TEXT_MAX 160   /* bytes of a refusal's or a welcome's text, NUL included */
#define RC_DOOR_PROGRAM_MAX 32 /* bytes of a program's name, NUL included */
#define RC_DOOR_CALLS_MAX 512    /* more than the calls of a build */
#define RC_DOOR_SESSIONS_MAX 256 /* sessions of one report */

enum rc_door_purpose {
	RC_DOOR_NEW = 1,    /* a new client, which gets a worker of its own */
	RC_DOOR_JOIN = 2,   /* one more connection (thread) of the client that holds the token */
	RC_DOOR_STATUS = 3, /* a query: no worker, no card; the welcome has text and counts only */
	RC_DOOR_REPORT = 4, /* as STATUS, and the daemon's counters and the sessions that this client may see follow */
	RC_DOOR_MEMORY = 5, /* over a Unix socket: the client that holds the token passes its pinned memory to its worker; no
			     * card, struct rc_wire_pin follows the welcome */
	RC_DOOR_HANDLE = 6, /* the client that holds the token opens a descriptor of a shareable handle; no card. After the welcome
			     * it sends the struct rc_wire_shared, and the worker sends it back. The worker keeps the memory
			     * until the connection ends */
};

/* Why a client is refused. Sent as its number, so new reasons are appended. */
enum rc_door_reason {
	RC_DOOR_BAD_VERSION = 1, /* the server speaks another protocol version: -EPROTONOSUPPORT at the client */
	RC_DOOR_DENIED = 2,      /* wrong key, no key, another user: -EACCES */
	RC_DOOR_NO_GPU = 3,      /* no GPU of that index, or none at all: -ENODEV */
	RC_DOOR_NO_SESSION = 4,  /* join: no such session, or it has ended: -ESRCH */
	RC_DOOR_BUSY = 5,        /* too many clients, or no worker in time: -EBUSY */
	RC_DOOR_MALFORMED = 6,   /* a message breaks the protocol: -EPROTO */
	RC_DOOR_FAILED = 7,      /* the server failed; the text names the cause: -EIO */
	RC_DOOR_ENCRYPTION = 8,  /* one side demands encryption and the other's build has none: -EOPNOTSUPP */
};

/* One session of a report. */
typedef struct rc_door_session {
	uint64_t number;   /* the same in every report of this server */
	uint64_t age_us;   /* since it began */
	uint64_t calls;    /* CUDA calls served */
	uint64_t memory;   /* bytes of device memory allocated */
	uint64_t cpu_us;   /* processor time of its worker, that of the device's work too if the device is a software GPU */
	uint32_t uid;      /* UINT32_MAX: the client authenticated by key */
	uint32_t gpu;      /* index or RC_SERVER_ALL_GPUS */
	char program[RC_DOOR_PROGRAM_MAX]; /* as the client sent it: not verified */
	char client[80];   /* "unix:pid 12", "10.0.0.2:4711" */
} rc_door_session_t;

typedef struct rc_door_key {
	uint8_t bytes[RC_DOOR_KEY_BYTES];
} rc_door_key_t;

/* True if this build can use credentials of MUNGE (libmunge and libsodium were found). */
bool rc_door_munge_supported(void);

/* True if this build can use key files (libsodium was found). */
bool rc_door_keys_supported(void);

/* Reads a key file. -EPERM: its mode permits others than the owner, or the owner is neither this user nor root;
 * -EINVAL: not a key file; -ENOTSUP: no key support in this build; else as open(2). Logged. */
int rc_door_key_load(const char *path, rc_door_key_t *key);

/* Writes a new random key to path, mode 0600. -EEXIST: there is a file already; -ENOTSUP. Logged. */
int rc_door_key_make(const char *path);

/* ---- the client's side; any thread ---- */

typedef struct rc_door_connect {
	rc_server_t server; /* gpu: the server checks it at NEW */
	enum rc_door_purpose purpose;
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* JOIN, MEMORY, HANDLE: the token in the welcome to this process's NEW */
	const hr_card_t *card;      /* NEW, JOIN: this connection's channel */
	const char *key_file;       /* NULL: the setting HEADRACE_KEY_FILE */
	bool encrypt;               /* demand encryption over TCP; false: the setting HEADRACE_ENCRYPT */
	uint32_t timeout_ms;        /* of the whole handshake; 0: HEADRACE_CONNECT_TIMEOUT_MS */
} rc_door_connect_t;

typedef struct rc_door_welcome {
	int fd;                     /* the caller's: hand it to hr_channel_connect; blocking mode, close-on-exec */
	uint8_t token[RC_DOOR_TOKEN_BYTES];
	hr_card_t card;             /* NEW, JOIN: the worker's channel for this connection; len 0 for STATUS */
	uint32_t gpus;              /* GPUs that the server has */
	uint32_t clients, workers;  /* STATUS: clients being served; workers that are ready */
	char text[RC_DOOR_TEXT_MAX]; /* the server's version and driver, as text for users */
	bool other_calls;           /* NEW: the server's table of calls is another one, see call_number */
	uint16_t call_number[RC_DOOR_CALLS_MAX]; /* the server's number of each call of this build; 0: it has none */
	bool encrypts;              /* this process demands encryption over TCP */
	bool encrypted;             /* the caller gives cipher to hr_channel_connect, and wipes it */
	hr_cipher_keys_t cipher;
	bool local;                 /* over a Unix socket, so on the same host */
} rc_door_welcome_t;

/*
 * Connects to a server and does the handshake. Blocks until welcome, refusal or time-out. The time-out does not limit
 * the resolver, which finds a host's address. The cause of a failure is logged once. Errors, beside those of the
 * reasons above: -ECONNREFUSED, -ENOENT (no server listens there), -EHOSTUNREACH and the other errors of connect(2);
 * -ENXIO: no such host; -ETIMEDOUT; -EKEYREJECTED: the server did not prove that it has the key, or runs as a user whom
 * the client does not trust.
 */
int rc_door_connect(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome);

typedef struct rc_door_report {
	uint32_t count;    /* in session[] */
	uint32_t hidden;   /* count of sessions that this client may not see, or that exceed the report's size */
	struct rc_counters counters;
	rc_door_session_t session[RC_DOOR_SESSIONS_MAX];
} rc_door_report_t;

/* Connects with the purpose RC_DOOR_REPORT and reads the report. welcome->fd is closed and -1. Fails as
 * rc_door_connect. */
int rc_door_ask_report(const rc_door_connect_t *server, rc_door_welcome_t *welcome, rc_door_report_t *report);

/* ---- the server's side: for one thread. Only rc_door_peer_* may block, and briefly ---- */

typedef struct rc_door rc_door_t;

typedef struct rc_door_policy {
	bool have_key;
	rc_door_key_t key;
	bool munge;             /* accept credentials of MUNGE over TCP */
	bool encrypt;           /* demand it of every TCP client */
	bool own_user_only;     /* over Unix sockets and loopback: only this user and root, even if this is root */
	uint32_t max_handshakes; /* at a time over Unix sockets, and as many again over TCP. 0: 256 */
	uint32_t timeout_ms;     /* of one handshake. 0: 5000 */
} rc_door_policy_t;

/* An authenticated client and its request, which the server has not answered yet. The struct has no pointers: the
 * daemon sends it to the worker as it is, with fd by SCM_RIGHTS. */
typedef struct rc_door_peer {
	int fd;                  /* after rc_door_peer_receive: the receiving process's descriptor */
	enum rc_door_purpose purpose;
	uint8_t token[RC_DOOR_TOKEN_BYTES]; /* JOIN, MEMORY, HANDLE: as sent; NEW: drawn by the daemon */
	uint32_t gpu;            /* index or RC_SERVER_ALL_GPUS */
	hr_card_t card;          /* of the client's channel; len 0 for STATUS */
	uid_t uid;               /* (uid_t)-1: unknown, as the client authenticated by key over TCP */
	bool by_key, by_munge, local; /* local: Unix socket */
	bool send_calls;         /* NEW: the welcome is followed by the list of calls */
	/* For limits. source: the peer's user if it is on this host, else its address. key_id: a fingerprint of the key
	 * that it authenticated by, which does not reveal the key; 0 if it used none. Compare the bytes. */
	uint8_t source[RC_DOOR_SOURCE_BYTES];
	uint8_t key_id[RC_DOOR_KEY_ID_BYTES];
	pid_t pid;               /* over a Unix socket, else 0 */
	char program[RC_DOOR_PROGRAM_MAX]; /* NEW: as the client sent it, without control characters */
	char name[80];           /* for messages: "unix:pid 12", "10.0.0.2:4711" */
	bool encrypts;           /* the server encrypts every TCP connection */
	bool encrypted;          /* the process that connects the channel gives cipher to it, and wipes it */
	hr_cipher_keys_t cipher;
	uint8_t seal[RC_DOOR_KEY_BYTES]; /* by_key, by_munge: the key of the welcome's proof; for this handshake only */
} rc_door_peer_t;

int rc_door_open(const rc_door_policy_t *policy, rc_door_t **door);
void rc_door_close(rc_door_t *door); /* NULL is allowed; removes the socket files that it made */

/*
 * Listens at an address or a Unix socket. A socket file that a dead daemon has left is replaced. -EADDRINUSE: a process
 * listens at the socket file; -EPERM: a network address beyond loopback and no key. Logged.
 */
int rc_door_listen(rc_door_t *door, const rc_server_t *place);

/* Appends ",ADDRESS" to the text for each IP address, except loopback, at which the door listens. Leaves out what does
 * not fit into size. */
void rc_door_add_addresses(const rc_door_t *door, char *text, size_t size);

/* Listens at a socket that another process has opened, as systemd does. The socket file is not removed at the end. -EPERM
 * as above; -EPROTOTYPE and others: no listening stream socket. Logged. */
int rc_door_adopt(rc_door_t *door, int fd);

/* Replaces key, encrypt and own_user_only, for clients that come from now on. A handshake that has begun ends if one of
 * them has changed. -EPERM: the door listens beyond loopback and the new policy has no key; logged. */
int rc_door_set_policy(rc_door_t *door, const rc_door_policy_t *policy);

/* For a process forked from the server: closes its descriptors and overwrites its key. The server's door, its socket
 * files and its handshakes remain. */
void rc_door_abandon(rc_door_t *door);

/* For poll(2). fd: readable when rc_door_next has work. timeout: ms after which rc_door_next must be called in any
 * case; -1: none. */
int rc_door_fd(const rc_door_t *door);
int rc_door_timeout(const rc_door_t *door);

/* Continues the handshakes. 1: *peer has authenticated itself, and its descriptor is the caller's; 0: none has. */
int rc_door_next(rc_door_t *door, rc_door_peer_t *peer);

/* Sets the members of *counters that the door has counted: handshakes, and of refused the clients that it has refused or
 * dropped itself. */
void rc_door_count(const rc_door_t *door, struct rc_counters *counters);

/* Sends the welcome, clears O_NONBLOCK and leaves the descriptor open, for hr_channel_connect. Called by the worker for
 * NEW and JOIN with its channel's card, by the daemon for STATUS and REPORT (card NULL). -EPIPE and other errors of
 * send(2): the peer has closed the connection. */
int rc_door_peer_welcome(const rc_door_peer_t *peer, const hr_card_t *card, uint32_t gpus, uint32_t clients,
			  uint32_t workers, const char *text);

/* Sends the report after the welcome to a REPORT request. Never blocks; -EPIPE: the socket's buffer is too small. */
int rc_door_peer_report(const rc_door_peer_t *peer, const rc_door_report_t *report);

/* Pass a peer with its descriptor to another process, as one message over a SOCK_SEQPACKET socket. The sender keeps its
 * own descriptor. receive returns 1: a peer; 0: the other side closed the socket; -EAGAIN on a non-blocking socket;
 * -EMFILE: a peer came, but this process has no free descriptor, so the peer's connection is lost. */
int rc_door_peer_send(int socket, const rc_door_peer_t *peer);
int rc_door_peer_receive(int socket, rc_door_peer_t *peer);

/* The same for any message of size bytes, over any Unix socket. -EPROTO: not one message of this size with one
 * descriptor. */
int rc_door_pass(int socket, const void *bytes, size_t size, int fd);
int rc_door_take(int socket, void *bytes, size_t size, int *fd);

/* Proves, without sending it, that this side has a secret of RC_DOOR_KEY_BYTES: a keyed hash of a label and size bytes. In a
 * build without libsodium, which serves its own host only, the proof is the secret itself. */
void rc_door_secret_proof(const uint8_t *secret, const char *label, const void *bytes, size_t size,
			  uint8_t proof[RC_DOOR_KEY_BYTES]);

/* Sends a refusal with its reason and closes the peer's descriptor. */
void rc_door_peer_refuse(const rc_door_peer_t *peer, enum rc_door_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
