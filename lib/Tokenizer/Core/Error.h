//===- Error.h - why text cannot become tokens -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_ERROR_H
#define MESHWRIGHT_TOKENIZER_CORE_ERROR_H

#include <sstream>
#include <stdexcept>

namespace meshwright::tokenizer {

/// What all of this library throws; its text is for users.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws an Error whose text is `words` in a row.
template <typename... Words> [[noreturn]] void fail(const Words &...words) {
  std::ostringstream text;
  (text << ... << words);
  throw Error(text.str());
}

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_ERROR_H
