//===- Error.cpp - errors that users read ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Error.h"

#include <system_error>

using namespace meshwright;

std::string meshwright::shapeText(const std::vector<int64_t> &shape) {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

std::string meshwright::grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (int64_t i = int64_t(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(size_t(i), ",");
  return digits;
}

std::string meshwright::errnoText(int code) { return std::generic_category().message(code); }
