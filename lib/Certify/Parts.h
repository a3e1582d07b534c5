//===- Parts.h - parts of a tensor that are not equal ones in order ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Between a few ops of a program devices have other parts of a tensor than those of a
// sharding: the part that has come to them in a ring, a chunk of a part, or every n-th
// element. And attention of some keys gives terms: of the sum that a gradient is, or of
// the softmax. These are tables by the position of a device in its group, so that no
// formula of the passes that make such programs is needed.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_PARTS_H
#define MESHWRIGHT_CERTIFY_PARTS_H

#include "Dist/Sharding.h"

#include "llvm/ADT/BitVector.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::certify {

using dist::Axes;
using dist::Mesh;
struct Expression;

/// The most devices, and parts of rows, of which a table says what each has: its size is their square.
inline constexpr int64_t mostDevices = 512;

/// Where a device, or a term of one, is along some axes.
class Coordinates {
public:
  /// Those of a position along `axes`, major first.
  static Coordinates at(int64_t position, llvm::ArrayRef<unsigned> axes, const Mesh &mesh);
  /// The position along axes that are all here.
  int64_t position(llvm::ArrayRef<unsigned> axes, const Mesh &mesh) const;
  int64_t operator[](unsigned axis) const { return of.at(axis); }
  /// Takes those of the other's axes.
  void move(const Coordinates &to);

private:
  std::map<unsigned, int64_t> of; ///< by axis
};

/// The indices first, first + stride, .. of a dimension; zeros, at none of its indices, where
/// `first` is below 0.
struct Span {
  int64_t first, size, stride = 1;
  bool isZeros() const { return first < 0; }
  bool operator==(const Span &other) const {
    return first == other.first && size == other.size && (stride == other.stride || size == 1);
  }
  bool operator!=(const Span &other) const { return !(*this == other); }
};
using Spans = llvm::SmallVector<Span, 2>;

/// Which indices of a dimension a device has, one block after the other, by its position along the
/// axes of `group`, major first. All devices have as many.
struct Pieces {
  Axes group;
  std::vector<Spans> of;

  /// Those of a dimension that is sharded over `group` in equal parts, in order.
  static Pieces ofShards(const Axes &group, int64_t extent, const Mesh &mesh);
  /// How many a device has.
  int64_t size() const;
  bool hasZeros() const;
  /// The span of each device, if each has one, which is not zeros.
  std::optional<std::vector<Span>> single() const;
  /// Of what each device has, `rows` from `from` on.
  Pieces slice(int64_t from, int64_t rows) const;
  /// Of what each device has, the part of so many equal ones that `from` has for its position along more
  /// axes.
  Pieces divided(const Axes &along, llvm::ArrayRef<int64_t> from) const;
  /// What each device has with zeros around it: `rows` in all, its own from `from` on.
  Pieces pad(int64_t from, int64_t rows) const;
  /// The sum with a tensor of the same elements, where in each place one of both is zeros.
  std::optional<Pieces> plus(const Pieces &other) const;
  /// What the devices have after device p has got what device from[p] has.
  Pieces permuted(llvm::ArrayRef<int64_t> from) const;
  /// ... along some axes of the group, in each group of devices along them.
  Pieces permuted(llvm::ArrayRef<int64_t> from, const Axes &along, const Mesh &mesh) const;

  bool operator==(const Pieces &other) const { return group == other.group && of == other.of; }
  bool operator!=(const Pieces &other) const { return !(*this == other); }
};

/// Which keys a query of attention may see: no fewer than it does, whatever data says. Queries from `asked`
/// on are padding, of which results are any numbers: they need see a key of `sure`, which those that may
/// see it do see, whatever data says.
struct View {
  int64_t queries = 0, keys = 0, window = 0, chunk = 0;
  bool causal = false;
  int64_t seen = 0; ///< of the keys; the others are padding, which no query sees
  int64_t asked = 0;
  Span sure = {0, 0};

  /// Whether a query of one block, other than padding, may see a key of the other.
  bool sees(const Span &queries, const Span &keys) const;
  /// A query of the block that is padding and surely sees no key of the others; -1 if there is none.
  int64_t blind(const Span &queries, llvm::ArrayRef<Span> keys) const;
  /// The first and the last key that a query may see.
  std::pair<int64_t, int64_t> keysOf(int64_t query) const;
  bool operator==(const View &other) const {
    return queries == other.queries && keys == other.keys && window == other.window &&
           chunk == other.chunk && causal == other.causal && seen == other.seen &&
           asked == other.asked && sure == other.sure;
  }
};

/// The value is not its expression, but the terms of it that belong to some pairs of a query and a
/// key. A pair is all queries of a block with all keys of another.
struct Terms {
  struct Pair {
    Span queries, keys;
    bool operator==(const Pair &other) const {
      return queries == other.queries && keys == other.keys;
    }
  };
  using Pairs = llvm::SmallVector<Pair, 4>;
  enum Kind {
    sum,    ///< of a gradient
    softmax ///< the mean of values over some keys, or the logarithm of their part of the denominator
  };
  /// Of what the device has elements: the dimension that is divided over `group`.
  enum Side { queries, keys, none };

  Kind kind = sum;
  Side side = none;
  Axes group;
  View view;
  std::vector<Pairs> of; ///< by position along `group`

  /// The terms of both; none if these are not terms of one value.
  std::optional<Terms> plus(const Terms &other) const;
  Terms permuted(llvm::ArrayRef<int64_t> from) const;
  /// What is missing, or there twice, of all terms of `parts`, or with `side` none of all devices
  /// together; empty if nothing.
  std::string flaw(const std::optional<Pieces> &parts) const;
  bool operator==(const Terms &other) const {
    return kind == other.kind && side == other.side && group == other.group && view == other.view &&
           of == other.of;
  }
  bool operator!=(const Terms &other) const { return !(*this == other); }
};

/// The value is the sum of `count` terms, and a device has the sum of some of them, by its position
/// along `group`. What the terms are is an expression of a term's number, so that the terms of two
/// tensors are the same ones where these are equal.
struct Summands {
  Axes group;
  const Expression *term = nullptr;
  int64_t count = 0;
  std::vector<llvm::BitVector> of = {};

  /// Of a sum over an index that is divided into blocks, of which each device has one: none if these
  /// are no equal blocks.
  static std::optional<Summands> ofBlocks(const Pieces &blocks, int64_t extent);
  /// Of which each device has its own.
  static Summands ofDevices(const Axes &group, const Mesh &mesh);
  /// The terms of both; none if a device would have one twice, or if these are not terms of one value.
  std::optional<Summands> plus(const Summands &other) const;
  /// Of a sum over two indices, the terms of both: the groups have no axis in common.
  Summands times(const Summands &other) const;
  /// What devices have after each has got, along some axes of the group, what device from[p] has.
  Summands permuted(llvm::ArrayRef<int64_t> from, const Axes &along, const Mesh &mesh) const;
  /// Whether each device has all of them.
  bool isComplete() const;
  bool operator==(const Summands &other) const {
    return group == other.group && term == other.term && count == other.count && of == other.of;
  }
};

/// The elements of `dims` dimensions, from `first` on, that a device has, in row-major order, are divided
/// into `count` equal chunks, each of which has all its elements in the last of these dimensions.
/// The tensor is all chunks, stacked, or the one whose number is the position along `axis`.
struct Chunks {
  int64_t count, dims;
  std::optional<unsigned> axis; ///< none if all are stacked
  int64_t first = 0;            ///< is 0 then
  /// Whether dimension `dim` is one of which the tensor has some elements, or all in a stack.
  bool has(int64_t dim) const { return !axis || (first <= dim && dim < first + dims); }
  /// Whether they are as many, of as many dimensions.
  bool isLike(const Chunks &other) const {
    return count == other.count && dims == other.dims && axis == other.axis;
  }
  bool operator==(const Chunks &other) const { return isLike(other) && first == other.first; }
};

/// A sum or a maximum over devices that is under way in messages. Each device has all elements in
/// pieces, in row-major order, and in each of them the terms of some devices.
struct Messages {
  Axes group;
  bool isMax;
  int64_t pieces;
  std::vector<std::vector<llvm::BitVector>> terms; ///< by device and piece
  unsigned number = 0; ///< of the sum: another one of the same value may have other terms
  bool operator==(const Messages &other) const {
    return group == other.group && isMax == other.isMax && pieces == other.pieces &&
           terms == other.terms && number == other.number;
  }
};

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_PARTS_H
