/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-line messages on stderr, "headrace[PID] LEVEL: text". HEADRACE_LOG=error|warn|info|debug sets the level (default
 * error). The function that first knows the cause of an error logs it, once: the call, the peer, errno or the status
 * text. Any thread. A line is written with one system call. Control characters in a message are replaced by '?', so a
 * message may quote text from a peer.
 */
#ifndef HR_BASE_LOG_H
#define HR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum hr_log_level { HR_LOG_ERROR, HR_LOG_WARN, HR_LOG_INFO, HR_LOG_DEBUG };

/* Returns whether a message of this level would be printed. */
bool hr_log_enabled(enum hr_log_level level);

/* Prints a message if its level is enabled. Preserves errno. */
void hr_log(enum hr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the log to this descriptor instead of stderr, for a process that gives its stderr away. Call it before other
 * threads log. */
void hr_log_set_fd(int fd);

/* Begins each line with "<N>", its priority as in syslog(3), for a log that goes to the system's journal. Call it before
 * other threads log. */
void hr_log_set_priorities(bool on);

/*
 * Also passes each message of HR_LOG_ERROR and HR_LOG_WARN to tap, printed or not: the text without the prefix, length
 * bytes and a NUL, on the thread that logs. NULL: no tap. Call it before other threads log.
 */
void hr_log_set_tap(void (*tap)(enum hr_log_level level, const char *text, size_t length));

/* As hr_log, but only the first time that the process reaches this line of code. */
#define hr_log_once(level, ...)                                                              \
	do {                                                                                 \
		static char hr_log_done_;                                                    \
		if (!__atomic_exchange_n(&hr_log_done_, 1, __ATOMIC_RELAXED))                \
			hr_log((level), __VA_ARGS__);                                        \
	} while (0)

#endif
