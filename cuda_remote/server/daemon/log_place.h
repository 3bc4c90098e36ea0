/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the daemon and its workers log: standard error, a file, or the system's journal. */
#ifndef RC_DAEMON_LOG_PLACE_H
#define RC_DAEMON_LOG_PLACE_H

/* 0 if the text names a place: "stderr", "journal", or a path that begins with "/". */
int log_place_check(const char *place);

/* Makes standard error the place; workers inherit it. A file is opened again, as logrotate(8) wants it. Negated errno,
 * logged. */
int log_place_open(const char *place);

/* If standard error is a stream of the journal (JOURNAL_STREAM), lines get a priority. Call it first in daemon and
 * worker. */
void log_place_note(void);

#endif
