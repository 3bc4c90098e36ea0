/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP streams between loopback addresses are not paced. Some congestion controls (BBR) delay segments to a rate that they estimate.
 * Over loopback there is nothing to be congested, and the estimate is often far too low. So these streams use "reno",
 * which every Linux kernel has and every user may choose. Streams between other addresses keep the congestion control
 * of the system.
 *
 * Pacing cannot be ended once a stream is up: the choice is made before connect(2), and by the listener, from which
 * accepted streams inherit it.
 */
#ifndef HR_PACING_H
#define HR_PACING_H

#include <stdbool.h>
#include <sys/socket.h>

#define HR_CONGESTION_MAX 16 /* size of a name of TCP's congestion control (the kernel's TCP_CA_NAME_MAX) */

/* Makes a TCP socket send without pacing if `to` is a loopback address. Call it before connect(2). */
void hr_stream_unpace(int fd, const struct sockaddr_storage *to);
/* Makes the TCP streams that the socket will accept send without pacing. Stores the name of the system's congestion
 * control, which accepted streams from other addresses need. Call it before listen(2). */
void hr_stream_unpace_listener(int fd, char system[HR_CONGESTION_MAX]);
/* Gives an accepted TCP stream the system's congestion control again if its peer has another address than a
 * loopback address. */
void hr_stream_accepted(int fd, const char system[HR_CONGESTION_MAX]);
/* Returns whether the peer of a TCP stream has a loopback address. */
bool hr_stream_is_local(int fd);

#endif
