//===- ExecOpBase.td - what the ops of floor 3 are made of -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_OP_BASE
#define MESHWRIGHT_EXEC_OP_BASE

include "Exec/ExecDialect.td"
include "Exec/ExecInterfaces.td"
include "Train/TrainInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;
defvar OwnFlops = DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>;

/// Row-major memory without gaps, of static shape.
def Exec_Memory : And<[StaticShapeMemRefOf<[F32, BF16, F16, F64, F8E4M3FN, F8E5M2, I32, I16, I8, I1]>.predicate,
                       CPred<"::llvm::cast<::mlir::MemRefType>($_self).getLayout().isIdentity()">]>;
def Exec_MemRef : Type<Exec_Memory, "row-major memref of static shape", "::mlir::MemRefType">;
def Exec_Operand : AnyTypeOf<[AnyRankedTensor, Exec_MemRef]>;

class Reads<TypeConstraint type> : Arg<type, "", [MemRead]>;
class Writes<TypeConstraint type> : Arg<type, "", [MemWrite]>;

#endif // MESHWRIGHT_EXEC_OP_BASE
