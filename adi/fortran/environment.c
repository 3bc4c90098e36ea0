/* SPDX-License-Identifier: BSD-3-Clause */
/* Stubs whose arguments in Fortran differ from those in C by more than their representation. */
#include "adi/fortran/fortran.h"

#include <string.h>

void pmpi_init_(MPI_Fint *ierror);
void pmpi_init_(MPI_Fint *ierror)
{
	hrf_return(PMPI_Init(NULL, NULL));
}
HRF_NAMES(init);

void pmpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror);
void pmpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
	hrf_return(PMPI_Init_thread(NULL, NULL, *required, provided));
}
HRF_NAMES(init_thread);

void pmpi_info_create_env_(MPI_Fint *info, MPI_Fint *ierror);
void pmpi_info_create_env_(MPI_Fint *info, MPI_Fint *ierror)
{
	MPI_Info new = MPI_INFO_NULL;
	int class = PMPI_Info_create_env(0, NULL, &new);
	if (class == MPI_SUCCESS)
		*info = PMPI_Info_toint(new);
	hrf_return(class);
}
HRF_NAMES(info_create_env);

void pmpi_pcontrol_(MPI_Fint *level);
void pmpi_pcontrol_(MPI_Fint *level)
{
	PMPI_Pcontrol(*level);
}
HRF_NAMES(pcontrol);

double pmpi_wtime_(void);
double pmpi_wtime_(void)
{
	return PMPI_Wtime();
}
HRF_NAMES(wtime);

double pmpi_wtick_(void);
double pmpi_wtick_(void)
{
	return PMPI_Wtick();
}
HRF_NAMES(wtick);

MPI_Aint pmpi_aint_add_(MPI_Aint *base, MPI_Aint *disp);
MPI_Aint pmpi_aint_add_(MPI_Aint *base, MPI_Aint *disp)
{
	return PMPI_Aint_add(*base, *disp);
}
HRF_NAMES(aint_add);

MPI_Aint pmpi_aint_diff_(MPI_Aint *addr1, MPI_Aint *addr2);
MPI_Aint pmpi_aint_diff_(MPI_Aint *addr1, MPI_Aint *addr2)
{
	return PMPI_Aint_diff(*addr1, *addr2);
}
HRF_NAMES(aint_diff);

/* Does nothing. The compiler must assume that it changes the buffer (MPI 5.0, section 19.1.8). */
void pmpi_f_sync_reg_(void *buf);
void pmpi_f_sync_reg_(void *buf)
{
	(void)buf;
}
HRF_NAMES(f_sync_reg);

/* A status is the same array of integers in mpif.h, and the same bytes in the type of the module mpi_f08. */
void pmpi_status_f2f08_(MPI_Fint *from, MPI_Fint *to, MPI_Fint *ierror);
void pmpi_status_f2f08_(MPI_Fint *from, MPI_Fint *to, MPI_Fint *ierror)
{
	memmove(to, from, MPI_F_STATUS_SIZE * sizeof *to);
	hrf_return(MPI_SUCCESS);
}
HRF_NAMES(status_f2f08);

void pmpi_status_f082f_(MPI_Fint *from, MPI_Fint *to, MPI_Fint *ierror);
void pmpi_status_f082f_(MPI_Fint *from, MPI_Fint *to, MPI_Fint *ierror)
{
	pmpi_status_f2f08_(from, to, ierror);
}
HRF_NAMES(status_f082f);

/* Stores the address of a detached buffer. place is NULL in mpif.h and the module mpi, where the type of this argument is wrong
 * so that it has no result (MPI 5.0, section 3.6). */
static void detached(int class, void *buffer, void **place, MPI_Fint *ierror)
{
	if (class == MPI_SUCCESS && place)
		*place = buffer;
	hrf_return(class);
}

#define DETACH_NAMES(name)                                       \
	HRF_NAME(mpi_##name##_, pmpi_##name##_);                 \
	HRF_NAME(mpi_##name##_f08_, pmpi_##name##_f08_)

#define DETACH(name, Name, integer)                                                          \
	void pmpi_##name##_(void *buffer_addr, integer *size, MPI_Fint *ierror);             \
	void pmpi_##name##_f08_(void **buffer_addr, integer *size, MPI_Fint *ierror);        \
	void pmpi_##name##_f08_(void **buffer_addr, integer *size, MPI_Fint *ierror)         \
	{                                                                                    \
		void *buffer = NULL;                                                         \
		detached(PMPI_##Name(&buffer, size), buffer, buffer_addr, ierror);           \
	}                                                                                    \
	void pmpi_##name##_(void *buffer_addr, integer *size, MPI_Fint *ierror)              \
	{                                                                                    \
		(void)buffer_addr;                                                           \
		pmpi_##name##_f08_(NULL, size, ierror);                                      \
	}                                                                                    \
	DETACH_NAMES(name)
DETACH(buffer_detach, Buffer_detach, MPI_Fint);
DETACH(buffer_detach_c, Buffer_detach_c, MPI_Count);

#define DETACH_OF(object, name, Name, integer)                                                                     \
	void pmpi_##name##_(MPI_Fint *object, void *buffer_addr, integer *size, MPI_Fint *ierror);                 \
	void pmpi_##name##_f08_(MPI_Fint *object, void **buffer_addr, integer *size, MPI_Fint *ierror);            \
	void pmpi_##name##_f08_(MPI_Fint *object, void **buffer_addr, integer *size, MPI_Fint *ierror)             \
	{                                                                                                          \
		void *buffer = NULL;                                                                               \
		detached(PMPI_##Name(hrf_##object(*object), &buffer, size), buffer, buffer_addr, ierror);          \
	}                                                                                                          \
	void pmpi_##name##_(MPI_Fint *object, void *buffer_addr, integer *size, MPI_Fint *ierror)                  \
	{                                                                                                          \
		(void)buffer_addr;                                                                                 \
		pmpi_##name##_f08_(object, NULL, size, ierror);                                                    \
	}                                                                                                          \
	DETACH_NAMES(name)
DETACH_OF(comm, comm_detach_buffer, Comm_detach_buffer, MPI_Fint);
DETACH_OF(comm, comm_detach_buffer_c, Comm_detach_buffer_c, MPI_Count);
DETACH_OF(session, session_detach_buffer, Session_detach_buffer, MPI_Fint);
DETACH_OF(session, session_detach_buffer_c, Session_detach_buffer_c, MPI_Count);
