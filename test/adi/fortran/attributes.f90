! SPDX-License-Identifier: BSD-3-Clause
! Attributes that Fortran sets and C reads, and the other way round; with attributes_in_c.c. A failure stops with its own code.
program attributes
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function c_key() bind(C)
      import
    end function
    integer(c_int) function c_deleted() bind(C)
      import
    end function
    integer(c_long) function c_address() bind(C)
      import
    end function
    subroutine c_set(comm, key) bind(C)
      import
      integer(c_int), value :: comm, key
    end subroutine
    integer(c_int) function c_is(comm, key, val) bind(C)
      import
      integer(c_int), value :: comm, key
      integer(c_long), value :: val
    end function
    integer(c_int) function c_is_integer(comm, key, val) bind(C)
      import
      integer(c_int), value :: comm, key, val
    end function
    integer(c_int) function c_is_own(comm, key) bind(C)
      import
      integer(c_int), value :: comm, key
    end function
  end interface
  integer(MPI_ADDRESS_KIND), parameter :: big = 2_MPI_ADDRESS_KIND ** 40 + 5
  integer(MPI_ADDRESS_KIND) :: val
  integer :: comm, other, key, old_key, of_c, i, n, ierror, deletes = 0
  logical :: flag
  call MPI_Init(ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, key, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, old_key, 0, ierror)
  of_c = c_key()

  ! Fortran sets, C reads the address of the value. Many times, so that memory is used again.
  do i = 1, 100
    call MPI_Comm_set_attr(comm, key, big + i, ierror)
    if (c_is(comm, key, big + i) == 0) stop 1
    call MPI_Comm_get_attr(comm, key, val, flag, ierror); if (.not. flag .or. val /= big + i) stop 2
  end do
  if (deletes /= 99) stop 3
  call MPI_Attr_put(comm, old_key, -9, ierror)
  if (c_is_integer(comm, old_key, -9) == 0) stop 4
  call MPI_Attr_get(comm, old_key, n, flag, ierror); if (.not. flag .or. n /= -9) stop 5
  call MPI_Comm_get_attr(comm, old_key, val, flag, ierror); if (.not. flag .or. val /= -9) stop 6

  ! A copy is independent of the original.
  call MPI_Comm_dup(comm, other, ierror)
  call MPI_Comm_set_attr(comm, key, 3_MPI_ADDRESS_KIND, ierror)
  if (c_is(other, key, big + 100) == 0 .or. c_is(comm, key, 3_MPI_ADDRESS_KIND) == 0) stop 7
  if (c_is_integer(other, old_key, -9) == 0) stop 8

  ! C sets, Fortran reads the address; so does C in a copy.
  call c_set(other, key)
  call MPI_Comm_get_attr(other, key, val, flag, ierror); if (.not. flag .or. val /= c_address()) stop 9
  if (c_is_own(other, key) == 0) stop 10
  call MPI_Comm_free(comm, ierror)
  call MPI_Comm_dup(other, comm, ierror)
  if (c_is_own(comm, key) == 0) stop 11

  ! A key of C with a value of Fortran: the delete callback gets the address.
  call MPI_Comm_set_attr(comm, of_c, 41_MPI_ADDRESS_KIND, ierror)
  if (c_is(comm, of_c, 41_MPI_ADDRESS_KIND) == 0) stop 12
  call MPI_Comm_delete_attr(comm, of_c, ierror)
  if (c_deleted() /= 41) stop 13
  call MPI_Comm_get_attr(comm, of_c, val, flag, ierror); if (flag) stop 14
  call MPI_Comm_free(comm, ierror)
  call MPI_Comm_free(other, ierror)
  call MPI_Finalize(ierror)
contains
  subroutine on_delete(comm, keyval, attribute_val, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + 1
    if (attribute_val /= big + deletes .and. deletes < 100) stop 15
    ierror = MPI_SUCCESS
  end subroutine
end program
