/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of headrace-info; each function prints one on stdout. */
#ifndef HR_INFO_H
#define HR_INFO_H

void info_versions(void);
void info_transports(void);

/* Prints the GPUs of this host, of the software GPU and of the servers in list (NULL: HEADRACE_SERVER). 0, or -1 if a
 * server could not be queried. */
int info_devices(const char *list);

/* Prints every setting of the installed parts, with its value and the value's origin. */
void info_settings(void);

/* Prints the table by which MPI chooses the algorithms of collectives. */
void info_collectives(void);

#endif
