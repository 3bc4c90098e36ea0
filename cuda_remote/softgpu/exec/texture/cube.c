/* SPDX-License-Identifier: BSD-3-Clause */
/* Cubemaps: the face that a direction meets, and the coordinates on it. */
#include "cuda_remote/softgpu/exec/texture/cube.h"

#include <math.h>

/* For each face: its axis, and the axes and signs of its coordinates s and t. */
static const struct {
	int8_t major, s, t, s_sign, t_sign;
} faces[6] = {
	{ 0, 2, 1, -1, -1 }, { 0, 2, 1, 1, -1 }, { 1, 0, 2, 1, 1 },
	{ 1, 0, 2, 1, -1 },  { 2, 0, 1, 1, -1 }, { 2, 0, 1, -1, -1 },
};

static uint32_t face_of(const double d[3])
{
	double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]);
	if (x >= y && x >= z)
		return d[0] < 0;
	return y >= z ? 2 + (d[1] < 0) : 4 + (d[2] < 0);
}

static uint32_t project(const double d[3], double at[3])
{
	uint32_t face = face_of(d);
	double major = fabs(d[faces[face].major]);
	at[0] = (faces[face].s_sign * d[faces[face].s] / major + 1) / 2;
	at[1] = (faces[face].t_sign * d[faces[face].t] / major + 1) / 2;
	at[2] = 0;
	return face;
}

uint32_t cube_project(const float direction[3], double at[3])
{
	const double d[3] = { (double)direction[0], (double)direction[1], (double)direction[2] };
	return project(d, at);
}

void cube_project_gradient(const float direction[3], const float gradient[3], double d[3])
{
	const double at[3] = { (double)direction[0], (double)direction[1], (double)direction[2] };
	uint32_t face = face_of(at);
	int8_t m = faces[face].major, s = faces[face].s, t = faces[face].t;
	double size = fabs(at[m]), growth = (at[m] < 0 ? -1 : 1) * (double)gradient[m];
	/* (s / m)' = (s' m - s m') / m^2, and the coordinate is half of that */
	d[0] = faces[face].s_sign * ((double)gradient[s] * size - at[s] * growth) / (size * size) / 2;
	d[1] = faces[face].t_sign * ((double)gradient[t] * size - at[t] * growth) / (size * size) / 2;
	d[2] = 0;
}

/*
 * The texel's centre lies just beyond the edge, and the direction to it meets the neighbouring face. The projection
 * onto that face moves it by less than half a texel along the edge, so its number along the edge stays the same.
 */
void cube_across_edge(uint32_t *face, int64_t at[2], uint32_t n)
{
	double d[3], there[3];
	d[faces[*face].major] = *face % 2 ? -1 : 1;
	d[faces[*face].s] = faces[*face].s_sign * ((2.0 * (double)at[0] + 1) / n - 1);
	d[faces[*face].t] = faces[*face].t_sign * ((2.0 * (double)at[1] + 1) / n - 1);
	*face = project(d, there);
	for (int i = 0; i < 2; i++) {
		at[i] = (int64_t)floor(there[i] * n);
		if (at[i] >= n)
			at[i] = n - 1;
		if (at[i] < 0)
			at[i] = 0;
	}
}
