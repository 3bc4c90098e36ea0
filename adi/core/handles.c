/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles as Fortran's integers: MPI 5.0, sections 19.3.4 and 20.3. A constant is its own number. An invalid handle or number
 * gives 0, which is neither. May be called at any time.
 */
#include "adi/core/entry.h"
#include "adi/core/object.h"
#include "adi/mpi.h"

static int to_number(const void *handle, enum adi_kind kind)
{
	if ((uintptr_t)handle < ADI_CONSTANTS)
		return (int)(uintptr_t)handle;
	adi_lock();
	struct adi_object *object = adi_object_at(handle, kind);
	int number = object ? adi_object_number(object) : 0;
	adi_unlock();
	return number < 0 ? 0 : number;
}

static void *from_number(int number, enum adi_kind kind)
{
	if (number < (int)ADI_CONSTANTS)
		return (void *)(uintptr_t)(number < 0 ? 0 : number);
	adi_lock();
	struct adi_object *object = adi_object_numbered(number, kind);
	adi_unlock();
	return object ? adi_object_handle(object) : 0;
}

int PMPI_Comm_toint(MPI_Comm comm)
{
	return to_number(comm, ADI_COMM);
}
ADI_PROFILED(Comm_toint);

MPI_Comm PMPI_Comm_fromint(int comm)
{
	return from_number(comm, ADI_COMM);
}
ADI_PROFILED(Comm_fromint);

int PMPI_Errhandler_toint(MPI_Errhandler errhandler)
{
	return to_number(errhandler, ADI_ERRHANDLER);
}
ADI_PROFILED(Errhandler_toint);

MPI_Errhandler PMPI_Errhandler_fromint(int errhandler)
{
	return from_number(errhandler, ADI_ERRHANDLER);
}
ADI_PROFILED(Errhandler_fromint);

int PMPI_Group_toint(MPI_Group group)
{
	return to_number(group, ADI_GROUP);
}
ADI_PROFILED(Group_toint);

MPI_Group PMPI_Group_fromint(int group)
{
	return from_number(group, ADI_GROUP);
}
ADI_PROFILED(Group_fromint);

int PMPI_Info_toint(MPI_Info info)
{
	return to_number(info, ADI_INFO);
}
ADI_PROFILED(Info_toint);

MPI_Info PMPI_Info_fromint(int info)
{
	return from_number(info, ADI_INFO);
}
ADI_PROFILED(Info_fromint);

int PMPI_Message_toint(MPI_Message message)
{
	return to_number(message, ADI_MESSAGE);
}
ADI_PROFILED(Message_toint);

MPI_Message PMPI_Message_fromint(int message)
{
	return from_number(message, ADI_MESSAGE);
}
ADI_PROFILED(Message_fromint);

int PMPI_Op_toint(MPI_Op op)
{
	return to_number(op, ADI_OP);
}
ADI_PROFILED(Op_toint);

MPI_Op PMPI_Op_fromint(int op)
{
	return from_number(op, ADI_OP);
}
ADI_PROFILED(Op_fromint);

int PMPI_Request_toint(MPI_Request request)
{
	return to_number(request, ADI_REQUEST);
}
ADI_PROFILED(Request_toint);

MPI_Request PMPI_Request_fromint(int request)
{
	return from_number(request, ADI_REQUEST);
}
ADI_PROFILED(Request_fromint);

int PMPI_Session_toint(MPI_Session session)
{
	return to_number(session, ADI_SESSION);
}
ADI_PROFILED(Session_toint);

MPI_Session PMPI_Session_fromint(int session)
{
	return from_number(session, ADI_SESSION);
}
ADI_PROFILED(Session_fromint);

int PMPI_Type_toint(MPI_Datatype datatype)
{
	return to_number(datatype, ADI_TYPE);
}
ADI_PROFILED(Type_toint);

MPI_Datatype PMPI_Type_fromint(int datatype)
{
	return from_number(datatype, ADI_TYPE);
}
ADI_PROFILED(Type_fromint);

int PMPI_Win_toint(MPI_Win win)
{
	return to_number(win, ADI_WIN);
}
ADI_PROFILED(Win_toint);

MPI_Win PMPI_Win_fromint(int win)
{
	return from_number(win, ADI_WIN);
}
ADI_PROFILED(Win_fromint);

/* There are no files: the only handle is MPI_FILE_NULL. */
int PMPI_File_toint(MPI_File file)
{
	return file == MPI_FILE_NULL ? (int)(uintptr_t)file : 0;
}
ADI_PROFILED(File_toint);

MPI_File PMPI_File_fromint(int file)
{
	return file == (int)(uintptr_t)MPI_FILE_NULL ? MPI_FILE_NULL : (MPI_File)0;
}
ADI_PROFILED(File_fromint);
