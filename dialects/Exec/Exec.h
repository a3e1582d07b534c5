//===- Exec.h - the exec dialect --------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_EXEC_H
#define MESHWRIGHT_EXEC_EXEC_H

#include "Exec/Target.h"
#include "Train/Train.h"
#include "meshwright/runtime/ABI.h"
#include "meshwright/runtime/MemorySpace.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace meshwright::exec {

class TargetAttr;

/// Attributes of kernel functions; see the dialect's description.
inline constexpr llvm::StringLiteral kernelAttr = "exec.kernel", templateAttr = "exec.template",
                                     iterationsAttr = "exec.iterations", chunksAttr = "exec.chunks",
                                     workspaceAttr = "exec.workspace", inplaceAttr = "exec.inplace",
                                     inPlaceAliasesAttr = "exec.inplace_aliases";
/// Marks an asynchronous collective or copy: the token that `exec.wait` waits for.
inline constexpr llvm::StringLiteral asyncTokenAttr = "exec.async_token";
/// On a call of a program that does two tasks at once: the programs of a forward and a backward
/// task alone.
inline constexpr llvm::StringLiteral pairAttr = "exec.pair";
/// On a collective that moves slots (dist::slotsAttr): the elements of a row.
inline constexpr llvm::StringLiteral rowAttr = "exec.row";
/// The id of an op whose results are observed, in the tensor form; and, on a module whose
/// ops have ids, the tensor form as text.
inline constexpr llvm::StringLiteral valueIdAttr = "exec.value_id",
                                     tensorFormAttr = "exec.tensor_form";
/// Attributes of attention in the tensor form, which become the attributes of exec.attention
/// with these names.
inline constexpr llvm::StringLiteral libraryAttr = "exec.library", reasonAttr = "exec.reason";
/// Attributes of a launch in the tensor form, arrays of i64: the inputs that are gradients, and the
/// results that are the only input with its elements moved; see the dialect's description.
inline constexpr llvm::StringLiteral gradientsAttr = "exec.gradients", movesAttr = "exec.moves";
/// The number of a collective in a finished module, and the groups of ranks that communicate
/// in that module; see the dialect's description.
inline constexpr llvm::StringLiteral collectiveAttr = "exec.collective", groupsAttr = "exec.groups";
/// Attributes of a module whose memory is assigned, by space: the size of its arena, the largest sum of
/// live bytes, which no attribute says of offload spaces, and bytes by category.
struct MemoryAttributes {
  llvm::StringLiteral bytes, live, memory;
};
inline constexpr BySpace<MemoryAttributes> memoryAttributes = {{
#define MW_MEMORY_SPACE(Space, name, text, bytes, live, memory, ...)                               \
  {"exec." bytes, "exec." live, "exec." memory},
#define MW_OFFLOAD_SPACE(Space, name, text, bytes, memory, ...) {"exec." bytes, "", "exec." memory},
#include "meshwright/runtime/MemorySpaces.def"
}};
/// Those of the arena.
inline constexpr llvm::StringLiteral arenaBytesAttr = memoryAttributes[MemorySpace::Device].bytes,
                                     liveBytesAttr = memoryAttributes[MemorySpace::Device].live,
                                     memoryAttr = memoryAttributes[MemorySpace::Device].memory;

/// The memory space of a memref; the device's for other types.
MemorySpace spaceOf(mlir::Type type);
inline bool isOffloaded(mlir::Type type) { return spaceOf(type) != MemorySpace::Device; }
/// The type of the same memory in `space`.
mlir::MemRefType inSpace(mlir::MemRefType type, MemorySpace space);
/// "the arena", or e.g. "the host's arena".
std::string arenaText(MemorySpace space);

/// What makes a copy between the arena and an offload space; nothing for other ops.
std::optional<CopyEngine> copyEngineOf(mlir::Operation *op);

/// Queues whose ops run in order, asynchronous or not: one for communication and one for each copy
/// engine.
struct Queue {
  std::optional<CopyEngine> engine;
  bool operator==(const Queue &other) const { return engine == other.engine; }
  bool operator!=(const Queue &other) const { return !(*this == other); }
};
/// The queue that an op runs in; nothing if the program runs it itself.
std::optional<Queue> queueOf(mlir::Operation *op);

/// The async token of a collective or a copy; nothing where the program
/// waits for it there, and for other ops.
std::optional<int64_t> asyncTokenOf(mlir::Operation *op);

/// The number of a collective; nothing before exec-number-collectives, and for other ops.
std::optional<int64_t> collectiveOf(mlir::Operation *op);

/// A group of ranks as `exec.groups` has it: its axes, then the channel if that is not 0.
mlir::ArrayAttr groupAlong(mlir::ArrayAttr axes, int64_t channel = 0);
/// The group in which an op communicates or counts its rank; null for other ops.
mlir::ArrayAttr groupOf(mlir::Operation *op);

/// The attribute of a module that says its target, a TargetAttr.
inline constexpr llvm::StringLiteral targetAttr = "exec.target";

/// Bytes of a tensor or memref of static shape.
int64_t bytesOf(mlir::Type type);

/// The target of the module that `op` is in; the default where no module around it says one.
TargetAttr targetOf(mlir::Operation *op);

/// Which dimensions of operand `operand` are not in the result of a sum of products.
llvm::SmallVector<int64_t> summedDims(const ShardingRule &rule, unsigned operand);

} // namespace meshwright::exec

#include "Exec/ExecDialect.h.inc"
#include "Exec/ExecEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Exec/ExecAttrs.h.inc"
#include "Exec/ExecInterfaces.h.inc"
#define GET_OP_CLASSES
#include "Exec/ExecOps.h.inc"

#endif // MESHWRIGHT_EXEC_EXEC_H
