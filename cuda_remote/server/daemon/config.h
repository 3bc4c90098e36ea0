/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headraced.conf: lines "NAME = VALUE" and comments, which begin with '#' as the first character of a line. Spaces around
 * name and value do not count. A value extends to the end of its line.
 */
#ifndef RC_DAEMON_CONFIG_H
#define RC_DAEMON_CONFIG_H

#define CONFIG_BYTES_MAX (1u << 20)

struct config_line {
	const char *file;
	unsigned number;
	const char *name, *value; /* in the file's text */
};

/* Reads a file into memory, which the caller frees. Logged. */
int config_read(const char *file, char **text);

/* Calls take for each setting in text, which becomes many strings. Ends at the first error, which is returned. A line
 * of another form is -EINVAL and logged. */
int config_parse(const char *file, char *text, int (*take)(void *context, const struct config_line *line),
		 void *context);

#endif
