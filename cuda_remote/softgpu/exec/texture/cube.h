/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cubemaps: which of six faces a direction meets and where (CUDA Programming Guide, "Cubemap Textures"; OpenGL 4.6,
 * table 8.19). Faces are +x, -x, +y, -y, +z, -z. If the largest coordinates are of equal size, the first one decides.
 */
#ifndef SOFTGPU_EXEC_CUBE_H
#define SOFTGPU_EXEC_CUBE_H

#include <stdint.h>

/* Returns the face that a direction meets; at: the coordinates on it, 0 to 1. */
uint32_t cube_project(const float direction[3], double at[3]);

/* The change d of the coordinates on that face if the direction changes by gradient. */
void cube_project_gradient(const float direction[3], const float gradient[3], double d[3]);

/*
 * A texel of an n by n face beyond one of its edges, at[0] or at[1] being -1 or n: changed to the face on the other
 * side and the texel there.
 */
void cube_across_edge(uint32_t *face, int64_t at[2], uint32_t n);

#endif
