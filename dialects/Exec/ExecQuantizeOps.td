//===- ExecQuantizeOps.td - products of quantized matrices -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Exec/Quantize.h has their classes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_QUANTIZE_OPS
#define MESHWRIGHT_EXEC_QUANTIZE_OPS

include "Exec/ExecOpBase.td"

def Exec_ScaledMatmulOp : Exec_Op<"scaled_matmul", [OwnFlops, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "C = scale_a scale_b op(A) op(B) + beta C";
  let description = [{
    The arguments of `mw_matmul_fp8` (meshwright/runtime/Fp8.h): A and B are f8E4M3FN or f8E5M2, which may differ,
    scale_a and scale_b are scalars in f32, C is f32, bf16 or f16. Sizes, rows, `batch` and strides are
    as of `exec.matmul`; with beta 0, C is not read. The sums are f32 and multiplied by both scales, and a
    narrow result is rounded once.
  }];
  let arguments = (ins Exec_MemRef:$a, Exec_MemRef:$b, Exec_MemRef:$c, Exec_MemRef:$scale_a,
                       Exec_MemRef:$scale_b, Optional<Exec_MemRef>:$workspace, BoolAttr:$transA,
                       BoolAttr:$transB, I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$lda,
                       I64Attr:$ldb, I64Attr:$ldc, I64Attr:$batch, I64Attr:$strideA,
                       I64Attr:$strideB, I64Attr:$strideC, F32Attr:$beta);
  let assemblyFormat = [{
    $a `,` $b `,` $c `scales` `(` $scale_a `,` $scale_b `)` `trans` `(` $transA `,` $transB `)`
    `sizes` `(` $m `,` $n `,` $k `)` `ld` `(` $lda `,` $ldb `,` $ldc `)` `batch` $batch
    `strides` `(` $strideA `,` $strideB `,` $strideC `)` `beta` $beta
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)?
    attr-dict `:` type($a) `,` type($b) `,` type($c) `,` type($scale_a) `,` type($scale_b)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::meshwright::exec::ProductShape getShape();
  }];
}

#endif // MESHWRIGHT_EXEC_QUANTIZE_OPS
