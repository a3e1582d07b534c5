//===- Version.h - the version of this compiler and its runtime --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_VERSION_H
#define MESHWRIGHT_RUNTIME_VERSION_H

namespace meshwright {

inline constexpr char version[] = "0.1.0";

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_VERSION_H
