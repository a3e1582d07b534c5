//===- Quantize.h - products of quantized matrices --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_QUANTIZE_H
#define MESHWRIGHT_EXEC_QUANTIZE_H

#include "Exec/Exec.h"

#define GET_OP_CLASSES
#include "Exec/ExecQuantizeOps.h.inc"

#endif // MESHWRIGHT_EXEC_QUANTIZE_H
