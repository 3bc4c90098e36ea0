! SPDX-License-Identifier: BSD-3-Clause
! MPI from Fortran 77 with mpif.h: messages, special addresses,
! callbacks, attributes, removed procedures. Any number of ranks.
! A failure stops with its own code.
      program fixed
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, st(MPI_STATUS_SIZE), x(4), y(4), req, op
      integer n, dt, i, comm, bl(2), ty(2), key
      integer old(2)
      logical flag
      integer(MPI_ADDRESS_KIND) disp(2), a1, a2
      character*(MPI_MAX_PROCESSOR_NAME) name
      double precision d, t0
      external sum77
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      do i = 1, 4
        x(i) = rank + i
      end do
      call mpi_isend(x, 4, MPI_INTEGER, mod(rank+1,size), 7,
     &  MPI_COMM_WORLD, req, ierr)
      call mpi_recv(y, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &  MPI_COMM_WORLD, st, ierr)
      call mpi_wait(req, MPI_STATUS_IGNORE, ierr)
      if (st(MPI_SOURCE) .ne. mod(rank+size-1,size)) stop 1
      if (st(MPI_TAG) .ne. 7) stop 2
      call mpi_get_count(st, MPI_INTEGER, n, ierr)
      if (n .ne. 4) stop 3
      d = rank
      call mpi_allreduce(MPI_IN_PLACE, d, 1, MPI_DOUBLE_PRECISION,
     &  MPI_MAX, MPI_COMM_WORLD, ierr)
      if (d .ne. size - 1) stop 4
      call mpi_op_create(sum77, .true., op, ierr)
      call mpi_allreduce(x, y, 4, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
      if (y(1) .ne. size*(size+1)/2) stop 5
      call mpi_op_free(op, ierr)
      call mpi_get_processor_name(name, n, ierr)
      if (n .le. 0 .or. name(n+1:) .ne. ' ') stop 6
      call mpi_get_address(x(1), a1, ierr)
      call mpi_get_address(x(3), a2, ierr)
      if (a2 - a1 .ne. 8) stop 7
      bl(1) = 1
      bl(2) = 1
      disp(1) = a1
      disp(2) = a2
      ty(1) = MPI_INTEGER
      ty(2) = MPI_INTEGER
      call mpi_type_create_struct(2, bl, disp, ty, dt, ierr)
      call mpi_type_commit(dt, ierr)
      call mpi_sendrecv(MPI_BOTTOM, 1, dt, rank, 1, y, 2, MPI_INTEGER,
     &  rank, 1, MPI_COMM_WORLD, st, ierr)
      if (y(1) .ne. rank+1 .or. y(2) .ne. rank+3) stop 8
      call mpi_type_free(dt, ierr)
      if (dt .ne. MPI_DATATYPE_NULL) stop 9
      old(1) = 0
      old(2) = 8
      call mpi_type_struct(2, bl, old, ty, dt, ierr)
      call mpi_type_extent(dt, n, ierr)
      if (n .ne. 12) stop 13
      call mpi_type_free(dt, ierr)
      call mpi_errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
      call mpi_send(x, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
      if (ierr .ne. MPI_ERR_RANK) stop 14
      call mpi_initialized(flag, ierr)
      if (.not. flag) stop 10
      t0 = mpi_wtime()
      if (mpi_wtime() .lt. t0) stop 15
      call mpi_keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 3,
     &  ierr)
      call mpi_attr_put(MPI_COMM_WORLD, key, -9, ierr)
      call mpi_comm_dup(MPI_COMM_WORLD, comm, ierr)
      call mpi_attr_get(comm, key, n, flag, ierr)
      if (.not. flag .or. n .ne. -9) stop 11
      call mpi_comm_free(comm, ierr)
      call mpi_finalize(ierr)
      end
      subroutine sum77(a, b, n, t)
      integer n, t, a(n), b(n), i
      include 'mpif.h'
      if (t .ne. MPI_INTEGER) stop 12
      do i = 1, n
        b(i) = b(i) + a(i)
      end do
      end
