/* SPDX-License-Identifier: BSD-3-Clause */
/* One lane's texture fetch: its geometry and its coordinates. */
#ifndef SOFTGPU_EXEC_FETCH_H
#define SOFTGPU_EXEC_FETCH_H

#include <stdbool.h>
#include <stdint.h>

enum geometry {
	GEOMETRY_1D, GEOMETRY_2D, GEOMETRY_3D, GEOMETRY_A1D, GEOMETRY_A2D, GEOMETRY_CUBE, GEOMETRY_ACUBE, GEOMETRIES
};

/* How many coordinates a geometry has, without the layer. */
uint32_t geometry_coordinates(enum geometry geometry);
bool geometry_layered(enum geometry geometry);

enum lod_mode { LOD_BASE, LOD_LEVEL, LOD_GRADIENT };

/* One lane's fetch. */
struct fetch {
	enum geometry geometry;
	enum lod_mode lod_mode;
	bool integer;          /* the coordinates are texels' numbers; nothing is filtered */
	uint32_t layer;        /* beyond the last one: the last one */
	float at[3];
	int32_t at_integer[3];
	float lod;
	float dx[3], dy[3];    /* gradients */
	int32_t offset[3];     /* texels */
};

#endif
