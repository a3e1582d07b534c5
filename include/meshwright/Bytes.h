//===- Bytes.h - amounts of memory as people write them ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_BYTES_H
#define MESHWRIGHT_BYTES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

namespace meshwright {

/// The units that `parseBytes` knows, and what it takes at most, for error messages.
inline constexpr llvm::StringLiteral byteUnits =
    "B, kB, MB, GB, KiB, MiB, GiB; less than 2^63 bytes";

/// Bytes of "70GiB", "1.5e9" or "512", which 64 bits hold; nothing if it is none of these.
inline std::optional<double> parseBytes(llvm::StringRef text) {
  text = text.trim();
  size_t end = text.find_first_not_of("0123456789.eE+");
  double number;
  if (text.substr(0, end).getAsDouble(number))
    return std::nullopt;
  double unit =
      llvm::StringSwitch<double>(end == llvm::StringRef::npos ? "" : text.substr(end).trim())
          .Cases({"", "B"}, 1)
          .Case("kB", 1e3)
          .Case("MB", 1e6)
          .Case("GB", 1e9)
          .Case("KiB", 1024.)
          .Case("MiB", 1024. * 1024)
          .Case("GiB", 1024. * 1024 * 1024)
          .Default(0);
  return unit && number * unit < 0x1p63 ? std::optional(number * unit) : std::nullopt;
}

} // namespace meshwright

#endif // MESHWRIGHT_BYTES_H
