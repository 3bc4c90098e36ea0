! SPDX-License-Identifier: BSD-3-Clause
! Sections of arrays as buffers of nonblocking operations with mpi_f08. Any number of ranks. A failure stops with its own code.
program sections
  use mpi_f08
  implicit none
  integer :: rank, size, left, right, i, j, k, n, error, class, root
  integer, asynchronous :: a(10), b(10), all(64), m(6, 5), t(4, 3, 4), u(4, 3, 4)
  integer(MPI_COUNT_KIND) :: big
  integer(MPI_ADDRESS_KIND) :: first, second
  type(MPI_Request) :: req(2)
  type(MPI_Status) :: st(2)
  type(MPI_Win) :: win
  type(MPI_Datatype) :: pair, odd
  complex :: c(4)
  type(MPI_Comm) :: comm
  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, size)
  left = mod(rank + size - 1, size)
  right = mod(rank + 1, size)

  ! One dimension: every second element to every third, fewer than the section has.
  a = [(100 * rank + i, i = 1, 10)]
  b = -1
  call MPI_Irecv(b(1:10:3), 4, MPI_INTEGER, left, 1, comm, req(1))
  call MPI_Isend(a(2:10:2), 3, MPI_INTEGER, right, 1, comm, req(2))
  call MPI_Waitall(2, req, st)
  if (any(b /= [100*left+2, -1, -1, 100*left+4, -1, -1, 100*left+6, -1, -1, -1])) stop 1
  call MPI_Get_count(st(1), MPI_INTEGER, n); if (n /= 3) stop 2

  ! Backwards, with a large count, in one operation.
  b = -1
  big = 5
  call MPI_Isendrecv(a(10:2:-2), big, MPI_INTEGER, right, 2, b(9:1:-2), big, MPI_INTEGER, left, 2, comm, req(1))
  call MPI_Wait(req(1), MPI_STATUS_IGNORE)
  if (any(b(9:1:-2) /= [(100*left+i, i = 10, 2, -2)]) .or. any(b(2:10:2) /= -1)) stop 3

  ! A row of a matrix, and a block of it: 5 elements of 2 x 3, so that the last column is not full.
  m = 0
  call MPI_Irecv(m(3, :), 5, MPI_INTEGER, left, 3, comm, req(1))
  call MPI_Isend(a(1:9:2), 5, MPI_INTEGER, right, 3, comm, req(2))
  call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
  if (any(m(3, :) /= [(100*left+i, i = 1, 9, 2)]) .or. any(m(1:2, :) /= 0) .or. any(m(4:6, :) /= 0)) stop 4
  m = 0
  call MPI_Irecv(m(2:4:2, 2:4), 5, MPI_INTEGER, left, 4, comm, req(1))
  call MPI_Isend(a, 5, MPI_INTEGER, right, 4, comm, req(2))
  call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
  if (m(2,2) /= 100*left+1 .or. m(4,2) /= 100*left+2 .or. m(2,3) /= 100*left+3 .or. m(4,3) /= 100*left+4) stop 5
  if (m(2,4) /= 100*left+5 .or. count(m /= 0) /= 5) stop 6

  ! Three dimensions, persistent, twice.
  u = 0
  call MPI_Send_init(t(1:4:3, 1:3:2, 2:4), 12, MPI_INTEGER, right, 5, comm, req(1))
  call MPI_Recv_init(u(2:3, 2:3, 4:2:-1), 12, MPI_INTEGER, left, 5, comm, req(2))
  do n = 1, 2
    t = reshape([(1000 * n + 100 * rank + i, i = 1, 48)], [4, 3, 4])
    call MPI_Startall(2, req)
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
    t = reshape([(1000 * n + 100 * left + i, i = 1, 48)], [4, 3, 4])
    do k = 0, 2
      do j = 0, 1
        do i = 0, 1
          if (u(2 + i, 2 + j, 4 - k) /= t(1 + 3 * i, 1 + 2 * j, 2 + k)) stop 7
        end do
      end do
    end do
    if (count(u /= 0) /= 12) stop 8
  end do
  call MPI_Request_free(req(1))
  call MPI_Request_free(req(2))

  ! Two elements of a datatype in each element of the section.
  c = cmplx(rank, -rank)
  call MPI_Irecv(c(1:3:2), 4, MPI_REAL, left, 6, comm, req(1))
  call MPI_Isend(c(2:4:2), 4, MPI_REAL, right, 6, comm, req(2))
  call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
  if (any(c(1:3:2) /= cmplx(left, -left)) .or. any(c(2:4:2) /= cmplx(rank, -rank))) stop 9

  ! Collectives.
  b = -1
  if (rank == 0) b(1:9:4) = [7, 8, 9]
  call MPI_Ibcast(b(1:9:4), 3, MPI_INTEGER, 0, comm, req(1))
  call MPI_Wait(req(1), MPI_STATUS_IGNORE)
  if (any(b /= [7, -1, -1, -1, 8, -1, -1, -1, 9, -1])) stop 10

  ! One-sided: a put and a get of sections, an accumulate.
  b = 0
  call MPI_Win_create(b, 40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win)
  call MPI_Win_fence(0, win)
  call MPI_Put(a(1:9:4), 3, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
  call MPI_Accumulate(a(10:1:-9), 2, MPI_INTEGER, right, 5_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, win)
  call MPI_Win_fence(0, win)
  if (any(b(1:7) /= [100*left+1, 100*left+5, 100*left+9, 0, 0, 100*left+10, 100*left+1])) stop 11
  m = 0
  call MPI_Get(m(2, 1:3), 3, MPI_INTEGER, left, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  n = mod(left + size - 1, size)
  if (any(m(2, 1:3) /= [100*n+1, 100*n+5, 100*n+9]) .or. count(m /= 0) /= 3) stop 12
  call MPI_Win_free(win)

  ! The address is that of the array, not of a copy.
  call MPI_Get_address(a(3:9:2), first)
  call MPI_Get_address(a(3), second)
  if (first /= second) stop 13

  ! What needs a copy that lives on is refused.
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Iallreduce(a(1:9:2), b, 5, MPI_INTEGER, MPI_SUM, comm, req(1), error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_BUFFER) stop 14
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_create_resized(pair, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, odd)
  call MPI_Type_commit(odd)
  call MPI_Isend(a(1:9:2), 1, odd, right, 7, comm, req(1), error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_BUFFER) stop 15
  call MPI_Isend(a(1:9:2), 6, MPI_INTEGER, right, 7, comm, req(1), error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_BUFFER) stop 16
  call MPI_Win_create(a(1:9:2), 20_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_BUFFER) stop 17
  ! MPI ignores the receive buffer of a gather and a reduction, and the send buffer of a scatter, but at the root.
  do root = 0, size - 1
    b = -1
    if (rank == root) then
      call MPI_Igather(a(2:4:2), 1, MPI_INTEGER, all, 1, MPI_INTEGER, root, comm, req(1), error)
    else
      call MPI_Igather(a(2:4:2), 1, MPI_INTEGER, b(1:9:2), 1, MPI_INTEGER, root, comm, req(1), error)
    end if
    if (error /= MPI_SUCCESS) stop 20
    call MPI_Wait(req(1), MPI_STATUS_IGNORE)
    if (rank == root .and. any(all(1:size) /= [(100 * i + 2, i = 0, size - 1)])) stop 21
    if (rank == root) then
      call MPI_Ireduce(a, b, 5, MPI_INTEGER, MPI_MAX, root, comm, req(1), error)
    else
      call MPI_Ireduce(a, b(1:9:2), 5, MPI_INTEGER, MPI_MAX, root, comm, req(1), error)
    end if
    if (error /= MPI_SUCCESS) stop 22
    call MPI_Wait(req(1), MPI_STATUS_IGNORE)
    if (rank == root .and. any(b(1:5) /= [(100 * (size - 1) + i, i = 1, 5)])) stop 23
    if (rank == root) then
      call MPI_Iscatter(all, 1, MPI_INTEGER, b(3:9:2), 1, MPI_INTEGER, root, comm, req(1), error)
    else
      call MPI_Iscatter(a(1:9:2), 1, MPI_INTEGER, b(3:9:2), 1, MPI_INTEGER, root, comm, req(1), error)
    end if
    if (error /= MPI_SUCCESS) stop 24
    call MPI_Wait(req(1), MPI_STATUS_IGNORE)
    if (b(3) /= 100 * rank + 2) stop 25
  end do
  call MPI_Igather(a, 1, MPI_INTEGER, b(1:9:2), 1, MPI_INTEGER, 0, MPI_COMM_SELF, req(1), error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_BUFFER) stop 26
  ! Contiguous sections and arrays of an assumed size are not.
  call whole(a)
  call MPI_Type_free(odd)
  call MPI_Type_free(pair)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
contains
  subroutine whole(x)
    integer, asynchronous :: x(*)
    b = 0
    call MPI_Iallreduce(x(1:5), b(2:6), 5, MPI_INTEGER, MPI_MAX, comm, req(1), error)
    call MPI_Wait(req(1), MPI_STATUS_IGNORE)
    if (error /= MPI_SUCCESS .or. any(b(2:6) /= [(100 * (size - 1) + i, i = 1, 5)])) stop 18
    b = 0
    call MPI_Irecv(b, 10, MPI_INTEGER, left, 8, comm, req(1))
    call MPI_Isend(x, 10, MPI_INTEGER, right, 8, comm, req(2))
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
    if (any(b /= [(100 * left + i, i = 1, 10)])) stop 19
  end subroutine
end program
