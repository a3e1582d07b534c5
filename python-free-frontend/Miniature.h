//===- Miniature.h - a configuration with small widths ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_MINIATURE_H
#define MESHWRIGHT_FRONTEND_MINIATURE_H

#include "Family.h"

namespace meshwright::frontend {

/// Makes the widths in `config`, which `family` reads, small: the numbers of heads, experts and layers stay, and other
/// sizes keep their remainders by `multiple`, so that what a mesh divides or pads it still does. Windows become
/// shorter than short sequences.
void makeSmall(llvm::json::Object &config, const Family &family, int64_t multiple);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_MINIATURE_H
