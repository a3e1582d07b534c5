//===- Inputs.h - files of test/Inputs/tokenizers --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_TOKENIZER_INPUTS_H
#define MESHWRIGHT_TEST_TOKENIZER_INPUTS_H

#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace testing_tokenizer {

inline std::string inputPath(const std::string &name) { return TOKENIZER_INPUTS + name; }

inline std::string readInput(const std::string &name) {
  std::ifstream file(inputPath(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<int32_t> readIds(const std::string &name) {
  std::istringstream text(readInput(name));
  return {std::istream_iterator<int32_t>(text), {}};
}

/// What `act` throws; empty if nothing.
template <typename Act> std::string complaint(Act act) {
  try {
    act();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace testing_tokenizer

#endif // MESHWRIGHT_TEST_TOKENIZER_INPUTS_H
