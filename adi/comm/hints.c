/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints of communicators: MPI 5.0, section 7.4.4. Kept are the assertions that the standard defines. */
#include "adi/bindings/functions.h"
#include "adi/comm/hints.h"

#include <string.h>

static const char *const known[] = {
	"mpi_assert_no_any_tag",
	"mpi_assert_no_any_source",
	"mpi_assert_exact_length",
	"mpi_assert_allow_overtaking",
};

int adi_comm_set_hints(struct adi_comm *comm, const struct adi_info *info)
{
	int class = MPI_SUCCESS;
	for (size_t i = 0; !class && i < sizeof known / sizeof known[0]; i++) {
		const char *value = adi_info_get(info, known[i]);
		if (!value || (strcmp(value, "true") && strcmp(value, "false")))
			continue;
		if (!comm->info && !(comm->info = adi_info_new()))
			return adi_error(MPI_ERR_NO_MEM, "no memory for hints");
		class = adi_info_put(comm->info, known[i], value);
	}
	return class;
}

int mpi_comm_set_info(struct adi_comm *comm, struct adi_info *info)
{
	return adi_comm_set_hints(comm, info);
}

int mpi_comm_get_info(struct adi_comm *comm, MPI_Info *info_used)
{
	struct adi_info *copy = adi_info_copy(comm->info);
	if (!copy)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the hints");
	*info_used = (MPI_Info)adi_object_handle(&copy->object);
	return MPI_SUCCESS;
}
