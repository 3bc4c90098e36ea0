! SPDX-License-Identifier: BSD-3-Clause
! MPI from Fortran 2008 with the module mpi_f08: large counts, statuses, operators, callbacks, strings, indices. Any number of
! ranks. A failure stops with its own code.
program f08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_ptr
  implicit none
  integer :: rank, size, i, n, place
  integer(MPI_COUNT_KIND) :: big
  type(MPI_Status) :: st, sts(2)
  type(MPI_Request) :: reqs(2)
  type(MPI_Comm) :: c
  type(MPI_Datatype) :: dt
  type(MPI_Op) :: op
  real(8) :: x(10), y(10)
  logical :: flag
  integer(MPI_ADDRESS_KIND) :: val, released = 0
  integer :: key
  character(len=MPI_MAX_OBJECT_NAME) :: name
  type(MPI_Info) :: info
  character(len=20) :: v
  type(MPI_Errhandler) :: errhandler
  integer :: seen = 0
  type(c_ptr) :: address
  real(8), pointer :: z(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  x = rank; y = -1
  big = 10
  call MPI_Irecv(y, big, MPI_DOUBLE_PRECISION, mod(rank+size-1,size), 3, MPI_COMM_WORLD, reqs(1))
  call MPI_Isend(x, 10, MPI_DOUBLE_PRECISION, mod(rank+1,size), 3, MPI_COMM_WORLD, reqs(2))
  call MPI_Waitall(2, reqs, sts)
  if (any(y /= mod(rank+size-1,size))) stop 1
  if (sts(1)%MPI_SOURCE /= mod(rank+size-1,size) .or. sts(1)%MPI_TAG /= 3) stop 2
  call MPI_Get_count(sts(1), MPI_DOUBLE_PRECISION, n); if (n /= 10) stop 3
  call MPI_Get_count(sts(1), MPI_DOUBLE_PRECISION, big); if (big /= 10) stop 4
  if (reqs(1) /= MPI_REQUEST_NULL) stop 5
  call MPI_Comm_dup(MPI_COMM_WORLD, c)
  if (c == MPI_COMM_WORLD) stop 6
  call MPI_Comm_set_name(c, "my comm")
  call MPI_Comm_get_name(c, name, n); if (name /= "my comm" .or. n /= 7) stop 7
  call MPI_Op_create(mysum, .true., op)
  call MPI_Allreduce(x, y, 10, MPI_DOUBLE_PRECISION, op, c)
  if (any(y /= size*(size-1)/2)) stop 8
  y = rank
  call MPI_Allreduce(MPI_IN_PLACE, y, 10, MPI_DOUBLE_PRECISION, MPI_SUM, c)
  if (any(y /= size*(size-1)/2)) stop 9
  call MPI_Op_free(op)
  ! An operation in progress is freed. More operations than exist at a time.
  do n = 1, 200
    call MPI_Op_create(mysum, .true., op)
    x = rank
    call MPI_Iallreduce(x, y, 10, MPI_DOUBLE_PRECISION, op, c, reqs(1))
    call MPI_Op_free(op)
    call MPI_Wait(reqs(1), MPI_STATUS_IGNORE)
    if (any(y /= size*(size-1)/2)) stop 40
  end do
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag); if (.not. flag .or. val < 32767) stop 10
  call MPI_Comm_create_keyval(mycopy, MPI_COMM_NULL_DELETE_FN, key, 5_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(c, key, 37_MPI_ADDRESS_KIND)
  block
    type(MPI_Comm) :: d
    call MPI_Comm_dup(c, d)
    call MPI_Comm_get_attr(d, key, val, flag); if (.not. flag .or. val /= 42) stop 11
    call MPI_Comm_free(d); if (d /= MPI_COMM_NULL) stop 12
  end block
  call MPI_Comm_free_keyval(key)
  call MPI_Info_create(info)
  call MPI_Info_set(info, " key ", " value ")
  n = 20
  call MPI_Info_get_string(info, "key", n, v, flag); if (.not. flag .or. v /= "value" .or. n /= 5) stop 13
  call MPI_Info_free(info)
  call MPI_Type_vector(5, 1, 2, MPI_DOUBLE_PRECISION, dt)
  call MPI_Type_commit(dt)
  x = [(real(i,8), i=1,10)]; y = 0
  call MPI_Sendrecv(x, 1, dt, rank, 1, y, 5, MPI_DOUBLE_PRECISION, rank, 1, c, MPI_STATUS_IGNORE)
  if (any(y(1:5) /= [1,3,5,7,9])) stop 14
  call MPI_Type_free(dt)
  call MPI_Irecv(y, 1, MPI_DOUBLE_PRECISION, rank, 1, c, reqs(2))
  reqs(1) = MPI_REQUEST_NULL
  call MPI_Send(x(3), 1, MPI_DOUBLE_PRECISION, rank, 1, c)
  call MPI_Waitany(2, reqs, place, st); if (place /= 2 .or. y(1) /= 3) stop 15
  call MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN)
  call MPI_Send(x, -1, MPI_DOUBLE_PRECISION, rank, 1, c, n); if (n /= MPI_ERR_COUNT) stop 16
  call MPI_Comm_create_errhandler(handler, errhandler)
  call MPI_Comm_set_errhandler(c, errhandler)
  call MPI_Errhandler_free(errhandler)
  call MPI_Send(x, 1, MPI_DOUBLE_PRECISION, size, 1, c, n); if (n /= MPI_ERR_RANK .or. seen /= MPI_ERR_RANK) stop 18
  call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, address)
  if (.not. c_associated(address)) stop 19
  call c_f_pointer(address, z, [10])
  z = 7
  call MPI_Free_mem(z)
  call MPI_Sizeof(x, n); if (n /= 8) stop 17
  ! The callbacks share a copy of extra_state. The program may change its own variable, which keeps what the program gave it.
  val = 7
  call MPI_Grequest_start(query, release, cancel, val, reqs(1))
  val = 100
  call MPI_Grequest_complete(reqs(1))
  call MPI_Wait(reqs(1), st); if (val /= 100 .or. released /= 8) stop 22
  call MPI_Comm_free(c)
  call MPI_Finalize()
contains
  subroutine mysum(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    real(8), pointer :: a(:), b(:)
    if (datatype /= MPI_DOUBLE_PRECISION) stop 20
    call c_f_pointer(invec, a, [len]); call c_f_pointer(inoutvec, b, [len])
    b = a + b
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_BYTE, 0)
    call MPI_Status_set_cancelled(status, .false.)
    extra_state = extra_state + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    released = extra_state
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, complete .or. extra_state == 8)
  end subroutine
  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= c) stop 21
    seen = error_code
  end subroutine
  subroutine mycopy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.; ierror = 0
  end subroutine
end program
