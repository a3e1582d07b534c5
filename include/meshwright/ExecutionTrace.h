//===- ExecutionTrace.h - a step as graphs for network simulators -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXECUTIONTRACE_H
#define MESHWRIGHT_EXECUTIONTRACE_H

#include "meshwright/Cost/Cluster.h"

#include "mlir/IR/BuiltinOps.h"

namespace meshwright {

/// Writes what each rank does in a step of a module at phase exec to `folder`, which is there, as
/// Chakra execution traces (Sridharan et al. 2023; schema 0.0.4 of MLCommons), which ASTRA-sim
/// reads: step.RANK.et, and groups.json with the ranks of each communicator group.
///
/// A node is a call of a kernel or a library (`num_ops`, FLOPs; `tensor_size`, bytes read and
/// written), a copy from or to the host, a collective (`comm_size`, bytes that a member puts in;
/// `pg_name`, its group) or a message. It depends on what runs before it on its stream and on what
/// it waits for. Calls have the microseconds that they take on `cluster`, if there is one.
/// An error if the traces would have more nodes than people can use.
llvm::Error writeExecutionTraces(mlir::ModuleOp module, const cost::Cluster *cluster,
                                 llvm::StringRef folder);

} // namespace meshwright

#endif // MESHWRIGHT_EXECUTIONTRACE_H
