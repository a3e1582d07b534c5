//===- FakeCompute.cpp - results of products and of NCCL -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FakeCompute.h"

#include "FakeStreams.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace fake;

/// A member that does not come is a fault of the test, or one that it wants.
constexpr auto patience = std::chrono::seconds(120);

bool fake::computes() {
  static const bool result = getenv("FAKE_GPU_COMPUTES");
  return result;
}

size_t fake::widthOf(Type type) { return type == Type::U8 ? 1 : type == Type::F32 || type == Type::I32 ? 4 : 2; }

float fake::read(Type type, const void *data, size_t i) {
  uint32_t bits;
  float value;
  switch (type) {
  case Type::F32:
    return static_cast<const float *>(data)[i];
  case Type::Bf16:
    bits = uint32_t(static_cast<const uint16_t *>(data)[i]) << 16;
    memcpy(&value, &bits, sizeof(value));
    return value;
  case Type::F16:
    return float(static_cast<const _Float16 *>(data)[i]);
  case Type::I32:
    return float(static_cast<const int32_t *>(data)[i]);
  case Type::U8:
    return float(static_cast<const uint8_t *>(data)[i]);
  }
  __builtin_unreachable();
}

void fake::write(Type type, void *data, size_t i, float value) {
  uint32_t bits;
  switch (type) {
  case Type::F32:
    static_cast<float *>(data)[i] = value;
    return;
  case Type::Bf16: // To the nearest, to even in the middle.
    memcpy(&bits, &value, sizeof(bits));
    bits = value != value ? 0x7FFF0000u : bits + 0x7FFF + (bits >> 16 & 1);
    static_cast<uint16_t *>(data)[i] = uint16_t(bits >> 16);
    return;
  case Type::F16:
    static_cast<_Float16 *>(data)[i] = _Float16(value);
    return;
  case Type::I32:
    static_cast<int32_t *>(data)[i] = int32_t(value);
    return;
  case Type::U8:
    static_cast<uint8_t *>(data)[i] = uint8_t(value);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static double inner(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
static double gelu(double x) { return 0.5 * x * (1 + std::tanh(inner(x))); }
static double geluGradient(double x) {
  double t = std::tanh(inner(x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// The factor in f32, each of `lines` rows of `k` together.
static std::vector<float> unpacked(const Matrix &matrix, const char *data, int64_t lines, int64_t k,
                                   bool linesAreRows) {
  std::vector<float> result(size_t(lines * k));
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t i = 0; i < k; ++i)
      result[size_t(line * k + i)] =
          read(matrix.type, data, size_t(linesAreRows ? line + i * matrix.ld : i + line * matrix.ld));
  return result;
}

/// In eight sums, which the processor adds side by side.
static float dot(const float *a, const float *b, int64_t k) {
  float sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= k; i += 8)
    for (int j = 0; j < 8; ++j)
      sums[j] += a[i + j] * b[i + j];
  for (; i < k; ++i)
    sums[0] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void fake::multiply(int64_t m, int64_t n, int64_t k, int64_t batch, float alpha, bool transA,
                    Matrix a, bool transB, Matrix b, float beta, Matrix c, Matrix d,
                    const Epilogue &epilogue) {
  auto place = [](const Matrix &matrix, int64_t number) {
    return static_cast<char *>(matrix.data) + number * matrix.stride * int64_t(widthOf(matrix.type));
  };
  for (int64_t number = 0; number < batch; ++number) {
    std::vector<float> left = unpacked(a, place(a, number), m, k, !transA);
    std::vector<float> right = unpacked(b, place(b, number), n, k, transB);
    char *from = place(c, number), *to = place(d, number);
    auto sum = [&](const std::vector<float> &factor, void *sums, int64_t lines) {
      for (int64_t line = 0; sums && line < lines; ++line) {
        double total = 0;
        for (int64_t i = 0; i < k; ++i)
          total += double(factor[size_t(line * k + i)]);
        write(d.type, sums, size_t(line), float(total));
      }
    };
    sum(left, epilogue.sumsOfA, m);
    sum(right, epilogue.sumsOfB, n);
    for (int64_t column = 0; column < n; ++column)
      for (int64_t row = 0; row < m; ++row) {
        float value = alpha * dot(&left[size_t(row * k)], &right[size_t(column * k)], k);
        if (beta != 0)
          value += beta * read(c.type, from, size_t(row + column * c.ld));
        if (epilogue.bias)
          value += read(epilogue.biasType, epilogue.bias, size_t(row + number * epilogue.biasStride));
        if (Matrix *aux = epilogue.aux) {
          auto at = size_t(row + column * aux->ld);
          if (epilogue.gelu)
            write(aux->type, place(*aux, number), at, value);
          else
            value *= float(geluGradient(read(aux->type, place(*aux, number), at)));
        }
        if (epilogue.gelu)
          value = float(gelu(value));
        write(d.type, to, size_t(row + column * d.ld), value);
      }
  }
}

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//

void Members::collective(int rank, Kind kind, const void *from, void *to, size_t count, Type type,
                         bool isMax, int root) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!calls.insert({rank, {from, to}}).second)
    wrong("member %d calls twice where others have not come", rank);
  if (int(calls.size()) == size) {
    finish(kind, count, type, isMax, root);
    calls.clear();
    ++round;
    changed.notify_all();
    return;
  }
  uint64_t mine = round;
  if (!changed.wait_for(lock, patience, [&] { return round != mine; }))
    wrong("a collective: %zu of %d members came", calls.size(), size);
}

void Members::finish(Kind kind, size_t count, Type type, bool isMax, int root) {
  bool gathers = kind == Kind::AllGather;
  size_t bytes = count * widthOf(type);
  // Results lie beside, since inputs may lie in outputs.
  std::vector<char> result(kind == Kind::Broadcast ? bytes : size_t(size) * bytes);
  if (gathers) {
    for (auto &[member, call] : calls)
      memcpy(&result[size_t(member) * bytes], call.from, bytes);
  } else if (kind == Kind::Broadcast) {
    memcpy(result.data(), calls[root].from, bytes);
  } else {
    size_t all = kind == Kind::ReduceScatter ? count * size_t(size) : count;
    for (size_t i = 0; i < all; ++i) {
      float value = 0;
      for (auto &[member, call] : calls) {
        float part = read(type, call.from, i);
        value = member == 0 ? part : isMax ? std::max(value, part) : value + part;
      }
      write(type, result.data(), i, value);
    }
  }
  for (auto &[member, call] : calls) {
    if (kind == Kind::Reduce && member != root)
      continue;
    size_t begin = kind == Kind::ReduceScatter ? size_t(member) * bytes : 0;
    memcpy(call.to, &result[begin], gathers ? size_t(size) * bytes : bytes);
  }
}

void Members::send(int from, int to, const void *data, size_t bytes,
                   Flag taken) {
  std::lock_guard<std::mutex> lock(mutex);
  auto begin = static_cast<const char *>(data);
  messages[{from, to}].push_back({{begin, begin + bytes}, std::move(taken)});
  changed.notify_all();
}

void Members::receive(int from, int to, void *data, size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  auto &channel = messages[{from, to}];
  if (!changed.wait_for(lock, patience, [&] { return !channel.empty(); }))
    wrong("member %d waits for a message of member %d that does not come", to, from);
  Message &message = channel.front();
  if (message.bytes.size() != bytes)
    wrong("member %d expects %zu bytes of member %d, which sent %zu", to, bytes, from,
          message.bytes.size());
  memcpy(data, message.bytes.data(), bytes);
  *message.taken = true;
  channel.pop_front();
}
