/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info's parts: each prints its section on stdout. */
#ifndef HR_INFO_H
#define HR_INFO_H

void info_versions(void);
void info_transports(void);

/* GPUs of this host, of the software GPU and of the servers in list (NULL: HEADRACE_SERVER). 0, or -1 if a server
 * did not let us in. */
int info_devices(const char *list);

/* Every setting of the parts that are installed, its value and where that came from. */
void info_settings(void);

#endif
