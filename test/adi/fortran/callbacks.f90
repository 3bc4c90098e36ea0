! SPDX-License-Identifier: BSD-3-Clause
! Many operations at a time, and many error handlers with different procedures; test/adi/fortran.sh appends the procedures.
program callbacks
  use mpi
  implicit none
  integer, parameter :: n = HANDLERS
  integer :: ops(n), handlers(n), i, ierr, a, b, called
  external :: add
  common /calls/ called
  call MPI_Init(ierr)
  do i = 1, n
    call MPI_Op_create(add, .true., ops(i), ierr)
    if (ierr /= MPI_SUCCESS) stop 1
  end do
  do i = 1, n
    a = i
    call MPI_Allreduce(a, b, 1, MPI_INTEGER, ops(i), MPI_COMM_SELF, ierr)
    if (b /= i) stop 2
    b = 1
    call MPI_Reduce_local(a, b, 1, MPI_INTEGER, ops(i), ierr)
    if (b /= i + 1) stop 3
    call MPI_Op_free(ops(i), ierr)
  end do
  do i = 1, n
    call make(i, handlers(i))
  end do
  do i = n, 1, -1
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers(i), ierr)
    if (ierr /= MPI_SUCCESS) stop 4
    call MPI_Errhandler_free(handlers(i), ierr)
    called = 0
    call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER, ierr)
    if (called /= i) stop 5
  end do
  call MPI_Finalize(ierr)
end program
subroutine add(in, inout, length, datatype)
  integer :: length, datatype, in(length), inout(length)
  inout = in + inout
end subroutine
