//===- FakeCompute.h - results of products and of NCCL ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where FAKE_GPU_COMPUTES is set, the fake GPU does not only look on: kernels are run by
// the machine of Ptx.h, products and communication as here, plainly. Executables then
// train on the processor with the code that they have for GPUs.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECOMPUTE_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECOMPUTE_H

#include "FakeStreams.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace fake {

/// Whether FAKE_GPU_COMPUTES is set.
bool computes();

enum class Type { F32, Bf16, F16, I32, U8 };
size_t widthOf(Type type);
float read(Type type, const void *data, size_t i);
void write(Type type, void *data, size_t i, float value);

/// Column-major: element (i, j) is at i + j ld; `stride` elements on in the next of a batch.
struct Matrix {
  void *data;
  Type type;
  int64_t ld, stride;
};

/// What is done with each element of a product; null is nothing.
struct Epilogue {
  const void *bias = nullptr; ///< one for each row
  Type biasType = Type::F32;
  int64_t biasStride = 0; ///< in the next of a batch
  bool gelu = false;      ///< gelu in its tanh form
  /// With gelu: what went into it is written here. Without: the product is the gradient of
  /// gelu's result, and what went into it is read here.
  Matrix *aux = nullptr;
  /// The sums of a factor over k, one for each row of op(A) or column of op(B), in D's type.
  void *sumsOfA = nullptr, *sumsOfB = nullptr;
};

/// D = epilogue(alpha op(A) op(B) + beta C): m x k times k x n.
void multiply(int64_t m, int64_t n, int64_t k, int64_t batch, float alpha, bool transA, Matrix a,
              bool transB, Matrix b, float beta, Matrix c, Matrix d, const Epilogue &epilogue);

/// The members of a communicator, which are threads of one process.
class Members {
public:
  enum class Kind { AllReduce, AllGather, ReduceScatter, Broadcast, Reduce };
  explicit Members(int size) : size(size) {}

  /// Waits for all members; the last one does it for all. `count` as NCCL has it.
  void collective(int rank, Kind kind, const void *from, void *to, size_t count, Type type,
                  bool isMax, int root);
  /// Does not wait; `taken` says when the other has it.
  void send(int from, int to, const void *data, size_t bytes,
            Flag taken);
  /// Waits for the message.
  void receive(int from, int to, void *data, size_t bytes);

private:
  struct Call {
    const void *from;
    void *to;
  };
  struct Message {
    std::vector<char> bytes;
    Flag taken;
  };
  void finish(Kind kind, size_t count, Type type, bool isMax, int root);

  int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, Call> calls;
  uint64_t round = 0;
  std::map<std::pair<int, int>, std::deque<Message>> messages;
};

} // namespace fake

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECOMPUTE_H
