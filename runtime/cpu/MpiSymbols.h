//===- MpiSymbols.h - OpenMPI, loaded when it is needed -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Executables must also run where no MPI is installed, so they do not link it.
// mpi.h serves for types only; everything used is named once in the tables below.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_MPISYMBOLS_H
#define MESHWRIGHT_RUNTIME_CPU_MPISYMBOLS_H

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

/// MPI functions used.
#define MW_MPI_FUNCTIONS(X)                                                                        \
  X(MPI_Init_thread)                                                                               \
  X(MPI_Finalize)                                                                                  \
  X(MPI_Abort)                                                                                     \
  X(MPI_Comm_rank)                                                                                 \
  X(MPI_Comm_size)                                                                                 \
  X(MPI_Comm_dup)                                                                                  \
  X(MPI_Comm_get_attr)                                                                             \
  X(MPI_Comm_set_errhandler)                                                                       \
  X(MPI_Isend)                                                                                     \
  X(MPI_Improbe)                                                                                   \
  X(MPI_Imrecv)                                                                                    \
  X(MPI_Test)                                                                                      \
  X(MPI_Get_count)                                                                                 \
  X(MPI_Error_string)                                                                              \
  X(MPI_Get_library_version)

/// OpenMPI's predefined handles are addresses of these objects: (type, symbol).
#define MW_MPI_HANDLES(X)                                                                          \
  X(MPI_Comm, ompi_mpi_comm_world)                                                                 \
  X(MPI_Datatype, ompi_mpi_byte)                                                                   \
  X(MPI_Errhandler, ompi_mpi_errors_return)

namespace meshwright {

struct MpiSymbols {
#define MW_DECLARE(name) decltype(&::name) name = nullptr;
  MW_MPI_FUNCTIONS(MW_DECLARE)
#undef MW_DECLARE
#define MW_DECLARE(type, name) type name = nullptr;
  MW_MPI_HANDLES(MW_DECLARE)
#undef MW_DECLARE

  /// Loads the library; an Error says what was looked for, and where.
  static const MpiSymbols &load();
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_MPISYMBOLS_H
