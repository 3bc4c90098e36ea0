/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies: MPI 5.0, sections 8.5.1 and 8.5.5 to 8.5.7. Ranks are numbered with the last coordinate fastest. */
#include "adi/bindings/functions.h"
#include "adi/comm/inter.h"
#include "adi/comm/topology.h"

#include <stdlib.h>

int adi_grid_check(int ndims, const int *dims, const int *periods, int most, int *n)
{
	if (ndims < 0)
		return adi_error(MPI_ERR_DIMS, "ndims is %d; valid: 0 and above", ndims);
	if (ndims && (!dims || !periods))
		return adi_error(MPI_ERR_ARG, "%s is a null pointer and ndims is %d", dims ? "periods" : "dims", ndims);
	int64_t product = 1;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] <= 0)
			return adi_error(MPI_ERR_DIMS, "dims[%d] is %d; valid: 1 and above", i, dims[i]);
		product *= dims[i];
		if (product > most)
			return adi_error(MPI_ERR_DIMS, "the grid has more than the %d processes of the communicator", most);
	}
	*n = (int)product;
	return MPI_SUCCESS;
}

static void coords_of(const struct adi_topology *cart, int rank, int *coords)
{
	for (int i = cart->ndims - 1; i >= 0; i--) {
		coords[i] = rank % cart->dims[i];
		rank /= cart->dims[i];
	}
}

/* The rank of a process at a distance along one dimension; MPI_PROC_NULL: outside. */
static int at_distance(const struct adi_topology *cart, int rank, int direction, int64_t distance)
{
	int below = 1, dim = cart->dims[direction];
	for (int i = direction + 1; i < cart->ndims; i++)
		below *= cart->dims[i];
	int64_t coord = cart->coords[direction] + distance;
	if (cart->periods[direction])
		coord = (coord % dim + dim) % dim;
	else if (coord < 0 || coord >= dim)
		return MPI_PROC_NULL;
	return rank + (int)(coord - cart->coords[direction]) * below;
}

static struct adi_topology *new_cart(int ndims, const int *dims, const int *periods, int rank)
{
	struct adi_topology *cart = adi_topology_new(MPI_CART);
	if (!cart)
		return NULL;
	cart->ndims = ndims;
	cart->dims = adi_topology_copy(dims, ndims);
	cart->periods = adi_topology_copy(periods, ndims);
	cart->coords = calloc((size_t)ndims + 1, sizeof *cart->coords);
	cart->n_sources = 2 * ndims;
	cart->sources = calloc(2 * (size_t)ndims + 1, sizeof *cart->sources);
	if (!cart->dims || !cart->periods || !cart->coords || !cart->sources) {
		adi_topology_release(cart);
		return NULL;
	}
	for (int i = 0; i < ndims; i++)
		cart->periods[i] = periods[i] != 0;
	coords_of(cart, rank, cart->coords);
	for (int i = 0; i < ndims; i++) {
		cart->sources[2 * i] = at_distance(cart, rank, i, -1);
		cart->sources[2 * i + 1] = at_distance(cart, rank, i, 1);
	}
	return cart;
}

static int no_memory(int ndims)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for a topology of %d dimensions", ndims);
}

/* Ranks keep their order: reorder allows another one, and asks for none. */
int mpi_cart_create(struct adi_comm *comm_old, int ndims, const int dims[], const int periods[], int reorder,
		    MPI_Comm *comm_cart)
{
	(void)reorder;
	*comm_cart = MPI_COMM_NULL;
	int n, class = adi_topology_check(comm_old);
	if (!class)
		class = adi_grid_check(ndims, dims, periods, comm_old->size, &n);
	if (class)
		return class;
	struct adi_topology *cart = NULL;
	if (comm_old->rank < n && !(cart = new_cart(ndims, dims, periods, comm_old->rank)))
		return no_memory(ndims);
	return adi_topology_comm(comm_old, n, cart, comm_cart);
}

int mpi_cart_map(struct adi_comm *comm, int ndims, const int dims[], const int periods[], int *newrank)
{
	int n, class = adi_topology_check(comm);
	if (!class)
		class = adi_grid_check(ndims, dims, periods, comm->size, &n);
	if (!class)
		*newrank = comm->rank < n ? comm->rank : MPI_UNDEFINED;
	return class;
}

int mpi_cartdim_get(struct adi_comm *comm, int *ndims)
{
	const struct adi_topology *cart;
	int class = adi_topology_take(comm, MPI_CART, &cart);
	if (!class)
		*ndims = cart->ndims;
	return class;
}

int mpi_cart_get(struct adi_comm *comm, int maxdims, int dims[], int periods[], int coords[])
{
	const struct adi_topology *cart;
	int class = adi_topology_take(comm, MPI_CART, &cart);
	if (!class)
		class = adi_check_room(dims, "dims", cart->ndims, maxdims, "maxdims");
	if (!class)
		class = adi_check_room(periods, "periods", cart->ndims, maxdims, "maxdims");
	if (!class)
		class = adi_check_room(coords, "coords", cart->ndims, maxdims, "maxdims");
	if (class)
		return class;
	for (int i = 0; i < cart->ndims; i++) {
		dims[i] = cart->dims[i];
		periods[i] = cart->periods[i];
		coords[i] = cart->coords[i];
	}
	return MPI_SUCCESS;
}

int mpi_cart_coords(struct adi_comm *comm, int rank, int maxdims, int coords[])
{
	const struct adi_topology *cart;
	int class = adi_topology_take(comm, MPI_CART, &cart);
	if (!class)
		class = adi_check_rank(comm, rank, "rank", false, false);
	if (!class)
		class = adi_check_room(coords, "coords", cart->ndims, maxdims, "maxdims");
	if (!class)
		coords_of(cart, rank, coords);
	return class;
}

int mpi_cart_rank(struct adi_comm *comm, const int coords[], int *rank)
{
	const struct adi_topology *cart;
	int class = adi_topology_take(comm, MPI_CART, &cart), found = 0;
	if (class)
		return class;
	if (cart->ndims && !coords)
		return adi_error(MPI_ERR_ARG, "coords is a null pointer");
	for (int i = 0; i < cart->ndims; i++) {
		int coord = coords[i], dim = cart->dims[i];
		if (cart->periods[i])
			coord = (coord % dim + dim) % dim;
		if (coord < 0 || coord >= dim)
			return adi_error(MPI_ERR_ARG,
					 "coords[%d] is %d; valid in this dimension, which is not periodic: 0 to %d", i,
					 coord, dim - 1);
		found = found * dim + coord;
	}
	*rank = found;
	return MPI_SUCCESS;
}

int mpi_cart_shift(struct adi_comm *comm, int direction, int disp, int *rank_source, int *rank_dest)
{
	const struct adi_topology *cart;
	int class = adi_topology_take(comm, MPI_CART, &cart);
	if (class)
		return class;
	if (direction < 0 || direction >= cart->ndims)
		return adi_error(MPI_ERR_DIMS, "direction is %d; valid: below %d, the dimensions of the topology", direction,
				 cart->ndims);
	*rank_source = at_distance(cart, comm->rank, direction, -(int64_t)disp);
	*rank_dest = at_distance(cart, comm->rank, direction, disp);
	return MPI_SUCCESS;
}

/* The subgrid of a process: its color is what the dropped coordinates say, its rank what the others say. */
static struct adi_topology *new_subgrid(const struct adi_topology *cart, const int *remain, int *color, int *rank)
{
	int *dims = adi_topology_copy(cart->dims, cart->ndims), *periods = adi_topology_copy(cart->periods, cart->ndims),
	    n = 0;
	struct adi_topology *subgrid = NULL;
	*color = *rank = 0;
	for (int i = 0; dims && periods && i < cart->ndims; i++) {
		int *part = remain[i] ? rank : color;
		*part = *part * cart->dims[i] + cart->coords[i];
		if (!remain[i])
			continue;
		dims[n] = cart->dims[i];
		periods[n++] = cart->periods[i];
	}
	if (dims && periods)
		subgrid = new_cart(n, dims, periods, *rank);
	free(dims);
	free(periods);
	return subgrid;
}

int mpi_cart_sub(struct adi_comm *comm, const int remain_dims[], MPI_Comm *newcomm)
{
	const struct adi_topology *cart;
	*newcomm = MPI_COMM_NULL;
	int color, rank, class = adi_topology_take(comm, MPI_CART, &cart);
	if (class)
		return class;
	if (cart->ndims && !remain_dims)
		return adi_error(MPI_ERR_ARG, "remain_dims is a null pointer");
	struct adi_topology *subgrid = new_subgrid(cart, remain_dims, &color, &rank);
	if (!subgrid)
		return no_memory(cart->ndims);
	struct adi_comm *created;
	class = adi_comm_divide(comm, color, rank, &created);
	*newcomm = class ? MPI_COMM_NULL : adi_comm_handle(created);
	if (class)
		adi_topology_release(subgrid);
	else
		created->topology = subgrid;
	return class;
}
