! SPDX-License-Identifier: BSD-3-Clause
! MPI from Fortran 90 with the module mpi: topologies, arrays of handles, windows, persistent requests. Any number of ranks. A
! failure stops with its own code.
program module_mpi
  use mpi
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  implicit none
  integer :: rank, size, ierror, cart, dims(1), coords(1), left, right, n, i, outcount
  integer :: status(MPI_STATUS_SIZE), requests(2), indices(2), statuses(MPI_STATUS_SIZE, 2), win, graph
  integer, allocatable :: counts(:), displacements(:), types(:), all(:), mine(:)
  logical :: periods(1), flag
  integer(MPI_ADDRESS_KIND) :: lb, extent, bytes
  type(c_ptr) :: base
  integer, pointer :: memory(:)
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=8) :: word = 'abcdefgh'
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)

  dims(1) = size
  periods(1) = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, .false., cart, ierror)
  call MPI_Cart_shift(cart, 0, 1, left, right, ierror)
  if (right /= mod(rank + 1, size) .or. left /= mod(rank + size - 1, size)) stop 1
  periods(1) = .false.
  call MPI_Cart_get(cart, 1, dims, periods, coords, ierror)
  if (.not. periods(1) .or. coords(1) /= rank .or. dims(1) /= size) stop 2

  allocate (counts(size), displacements(size), types(size), all(size), mine(size))
  counts = 1
  displacements = [(4 * i, i = 0, size - 1)]
  types = MPI_INTEGER
  mine = [(100 * rank + i, i = 0, size - 1)]
  call MPI_Alltoallw(mine, counts, displacements, types, all, counts, displacements, types, cart, ierror)
  if (any(all /= [(100 * i + rank, i = 0, size - 1)])) stop 3

  call MPI_Send_init(word, 8, MPI_CHARACTER, right, 5, cart, requests(1), ierror)
  call MPI_Recv_init(text, 8, MPI_CHARACTER, left, 5, cart, requests(2), ierror)
  do i = 1, 2
    text = ' '
    call MPI_Startall(2, requests, ierror)
    n = 0
    do while (n < 2)
      call MPI_Waitsome(2, requests, outcount, indices, statuses, ierror)
      if (outcount < 1 .or. any(indices(1:outcount) < 1) .or. any(indices(1:outcount) > 2)) stop 4
      n = n + outcount
    end do
    if (text /= word) stop 5
  end do
  call MPI_Request_free(requests(1), ierror)
  call MPI_Request_free(requests(2), ierror)
  if (any(requests /= MPI_REQUEST_NULL)) stop 6

  call MPI_Dist_graph_create_adjacent(cart, 1, [left], MPI_UNWEIGHTED, 1, [right], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, &
      ierror)
  call MPI_Dist_graph_neighbors_count(graph, n, i, flag, ierror)
  if (n /= 1 .or. i /= 1 .or. flag) stop 7
  call MPI_Comm_free(graph, ierror)

  bytes = 4
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, cart, base, win, ierror)
  call c_f_pointer(base, memory, [1])
  memory(1) = -1
  call MPI_Win_fence(0, win, ierror)
  extent = 0
  call MPI_Put(rank, 1, MPI_INTEGER, right, extent, 1, MPI_INTEGER, win, ierror)
  call MPI_Win_fence(0, win, ierror)
  if (memory(1) /= left) stop 8
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, bytes, flag, ierror)
  if (.not. flag .or. bytes /= 4) stop 9
  call MPI_Win_free(win, ierror)

  call MPI_Type_get_extent(MPI_DOUBLE_PRECISION, lb, extent, ierror)
  if (lb /= 0 .or. extent /= 8) stop 10
  call MPI_Error_string(MPI_ERR_RANK, text, n, ierror)
  if (n < 1 .or. text(n+1:) /= ' ') stop 11
  call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, cart, flag, status, ierror)
  if (flag) stop 12
  call MPI_Comm_free(cart, ierror)
  if (cart /= MPI_COMM_NULL) stop 13

  call MPI_Type_create_f90_integer(9, n, ierror)
  call MPI_Type_get_envelope(n, counts(1), indices(1), indices(2), i, ierror)
  if (counts(1) /= 1 .or. any(indices /= 0) .or. i /= MPI_COMBINER_F90_INTEGER) stop 14
  call MPI_Type_get_contents(n, 1, 0, 0, counts, [extent], types, ierror)
  if (counts(1) /= 9) stop 15
  call MPI_Finalize(ierror)
end program
