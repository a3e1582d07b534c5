//===- Protobuf.h - the encoding of protocol buffers ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Fields of a message as bytes, by their numbers, for formats of which a few fields are written:
// https://protobuf.dev/programming-guides/encoding. Messages and strings are fields that have
// bytes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_PROTOBUF_H
#define MESHWRIGHT_RUNTIME_PROTOBUF_H

#include <cstdint>
#include <cstring>
#include <string>

namespace meshwright::protobuf {

/// The bytes of a number in the order of this machine, which is little-endian.
template <typename T> std::string rawBytes(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += char(value | 0x80);
  return bytes + char(value);
}

/// A whole number that is not negative, a truth value, or one of an enumeration.
inline std::string number(int field, uint64_t value) {
  return varint(uint64_t(field) << 3) + varint(value);
}
/// A string, a message, or packed numbers.
inline std::string nested(int field, const std::string &value) {
  return varint(uint64_t(field) << 3 | 2) + varint(value.size()) + value;
}
inline std::string real(int field, double value) {
  return varint(uint64_t(field) << 3 | 1) + rawBytes(value);
}
inline std::string single(int field, float value) {
  return varint(uint64_t(field) << 3 | 5) + rawBytes(value);
}

} // namespace meshwright::protobuf

#endif // MESHWRIGHT_RUNTIME_PROTOBUF_H
