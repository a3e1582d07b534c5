//===- Error.h - errors that users read -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Every failure of the runtime is one `Error` whose text names the file or flag,
// the value found, and what to do. It ends all ranks (see Failure.h).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ERROR_H
#define MESHWRIGHT_RUNTIME_COMMON_ERROR_H

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace meshwright {

class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Another rank has ended, whose own message says why.
class LostRank : public Error {
public:
  explicit LostRank(int rank, const std::string &more = "")
      : Error("rank " + std::to_string(rank) + " has ended: see its message for why" + more) {}
};

/// Text made of its arguments, written one after the other.
template <typename... Parts> std::string text(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Throws an Error with the text of its arguments.
template <typename... Parts> [[noreturn]] void fail(const Parts &...parts) {
  throw Error(text(parts...));
}

/// "[2, 3, 4]".
std::string shapeText(const std::vector<int64_t> &shape);

/// 1234567 as "1,234,567".
std::string grouped(uint64_t number);

/// What errno `code` means, in words.
std::string errnoText(int code);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ERROR_H
