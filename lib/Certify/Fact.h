//===- Fact.h - which part of which global value a device has ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_FACT_H
#define MESHWRIGHT_CERTIFY_FACT_H

#include "Certify/Expression.h"
#include "Certify/Parts.h"

#include <map>
#include <optional>

namespace meshwright::certify {

/// Experts compute on rows, one for each routing choice of a token (`train.route`). In which row a
/// choice is differs between programs: it depends on how experts are divided into blocks, on the
/// sequences of a device and on rounds. So the expression of a tensor of rows says what the row of
/// each choice is, whatever row that is, and this says which rows the tensor has.
struct RoutedRows {
  const Expression *routing = nullptr; ///< the choices, and the expert of each
  int64_t experts = 0, blocks = 0, slots = 0;
  int64_t part = 0, parts = 1;   ///< the rows are divided into, and which one this is
  Axes sequences, tokens;        ///< that divided sequences, and each one, where rows were numbered
  std::optional<unsigned> round; ///< the axis whose positions are rounds, if each has some rows
  /// Dimensions of blocks and of slots; none if the tensor has a row's number for each choice.
  std::optional<unsigned> blockDim, slotDim;
  bool isIds = false; ///< numbers of rows, choices or experts, which count in this layout

  bool isLike(const RoutedRows &other) const {
    return routing == other.routing && experts == other.experts && blocks == other.blocks &&
           slots == other.slots && sequences == other.sequences && tokens == other.tokens &&
           round == other.round && part == other.part && parts == other.parts;
  }
  bool operator==(const RoutedRows &other) const {
    return isLike(other) && blockDim == other.blockDim && slotDim == other.slotDim &&
           isIds == other.isIds;
  }
  /// Of a tensor with `count` dimensions more in front.
  RoutedRows shifted(int count) const;
};

/// The end of a dimension that a program adds to it so that devices can divide it. Elements there
/// belong to no element of the expression: they are `fill`, or any real numbers. Of ids -1 is any
/// negative number, which selects no row. What is in the padding of two dimensions is infinite if
/// either is, and else both.
struct Padding {
  int64_t logical; ///< the elements before it
  std::optional<double> fill;
  bool isPositive = false; ///< any numbers that are not below 0
  bool operator==(const Padding &other) const {
    return logical == other.logical && fill == other.fill &&
           (fill || isPositive == other.isPositive);
  }
  /// Says only what is true of both, unless one is infinite and so no real number.
  void weaken(const Padding &other);
  bool operator!=(const Padding &other) const { return !(*this == other); }
};

/// How the devices of a mesh hold a global tensor of a shape. Along each mesh axis it is
///   sharded, if the axis is in dims[d]: dimension d is divided into equal contiguous parts, and
///   the
///     device at position p along dims[d], its first axis major, has part p;
///   on a root, if it is in `root`: the device at coordinate 0 has it, the others have no number;
///   partial by sum, if the axis is in `sum`: the global tensor is the sum of the devices' tensors;
///   partial by maximum, if it is in `max`;
///   replicated otherwise.
struct Distribution {
  Shape shape;
  llvm::SmallVector<Axes, 4> dims;
  Axes sum, max, root; ///< ascending
  std::optional<RoutedRows> rows;
  std::map<int64_t, Padding> padding; ///< by dimension; `shape` is with it
  /// By dimension, instead of equal parts in order: dims[d] is empty.
  std::map<int64_t, Pieces> pieces;
  std::optional<Terms> terms; ///< if the tensor is not the expression, but some terms of it
  std::optional<Summands> summands; ///< ... of a sum
  std::optional<Chunks> chunks;
  std::optional<Messages> messages;

  static Distribution replicated(llvm::ArrayRef<int64_t> shape);
  int64_t rank() const { return shape.size(); }
  bool isAny(int64_t dim) const { return shape[dim] == anyExtent; }
  /// Whether all devices along the axis have the same tensor.
  bool isReplicated(unsigned axis) const;
  /// What a device has of dimension `dim`; anyExtent if the dimension is that.
  int64_t localExtent(int64_t dim, const Mesh &mesh) const;
  /// What a device has of a dimension that is divided over some axes, in whatever order.
  std::optional<Pieces> piecesOf(int64_t dim, const Mesh &mesh) const;
  /// ... is this; equal parts in order become dims[dim].
  void setPieces(int64_t dim, const Pieces &pieces, const Mesh &mesh);
  /// Whether the tensor is none of a sharding: most ops have no rule for it.
  bool hasParts() const {
    return !pieces.empty() || terms || summands || chunks || messages;
  }
  /// Whether two dimensions are divided along one axis, so that devices have blocks of a diagonal: products,
  /// additions and what puts the parts together alone have rules for that.
  bool isDiagonal() const;
  /// Whether the tensor of a device has this shape, but for dimensions of any extent.
  bool fits(llvm::ArrayRef<int64_t> local, const Mesh &mesh) const;
  /// The extent of dimension `dim` without padding.
  int64_t logical(int64_t dim) const;
  /// Whether all in the padding of dimension `dim` is `value`; not if there is none.
  bool isFilled(int64_t dim, double value) const;
  /// Of a tensor with a dimension more in front, or with the first one less.
  void insertFront(int64_t extent);
  void eraseFront();
  /// The shape of an expression that is held so: rows have no numbers in it, nor has padding.
  Shape expressionShape() const;
  bool operator==(const Distribution &other) const {
    return shape == other.shape && dims == other.dims && sum == other.sum && max == other.max &&
           root == other.root && rows == other.rows && padding == other.padding &&
           pieces == other.pieces && terms == other.terms && summands == other.summands &&
           chunks == other.chunks && messages == other.messages;
  }
  bool operator!=(const Distribution &other) const { return !(*this == other); }
  /// "64x32 sharded [{data}, {}] partial by sum over {tensor}".
  std::string str(const Mesh &mesh) const;
};

/// A number that differs between devices: the sum over axes of a factor times the device's
/// coordinate, and of a table by the device's position in a group. Terms are ascending in axes,
/// without factors of 0; a table is not 0 everywhere.
struct Offset {
  llvm::SmallVector<std::pair<unsigned, int64_t>, 2> terms;
  Axes group = {};
  llvm::SmallVector<int64_t> table = {};

  /// Where the parts of `size` begin along a dimension that `axes` divide.
  static Offset ofParts(llvm::ArrayRef<unsigned> axes, int64_t size, const Mesh &mesh);
  Offset negated() const;
  /// None if both have tables, of different groups.
  std::optional<Offset> plus(const Offset &other) const;
  /// The number of the device at each position of a group; none if it depends on other axes.
  std::optional<llvm::SmallVector<int64_t>> along(const Axes &group, const Mesh &mesh) const;
  /// The axes, major first, if this is where parts of `size` begin along them.
  std::optional<Axes> axesOfParts(int64_t size, const Mesh &mesh) const;
  bool operator==(const Offset &other) const {
    return terms == other.terms && group == other.group && table == other.table;
  }
  bool operator!=(const Offset &other) const { return !(*this == other); }
  explicit operator bool() const { return !terms.empty() || !table.empty(); }
};

/// Why a value is partial by sum along `axes`: its expression `of` is an op that sums over an index,
/// of which each device along them has a block, in order. If it has some terms along some of the axes
/// (`Summands`), these may be blocks, too: their expression says so (Sums.h).
struct SummedIndex {
  const Expression *of;
  unsigned index;
  int64_t extent;
  Axes axes;
  bool operator==(const SummedIndex &other) const {
    return of == other.of && index == other.index && extent == other.extent && axes == other.axes;
  }
};

/// What is known about a value of a rank's program: it is a part of `expression`, held as `type`
/// says. If there is an offset, integers are those of the expression plus it.
struct Fact {
  const Expression *expression = nullptr;
  Distribution type;
  Offset offset = {};
  llvm::SmallVector<SummedIndex, 0> summed = {};

  /// Takes what another fact, of the same expression and type, becomes one with: it may be partial because
  /// of other indices.
  void merge(const Fact &other) {
    if (summed != other.summed)
      summed.clear();
  }
};

using FactList = llvm::SmallVector<Fact, 4>;
using Distributions = llvm::SmallVector<Distribution, 2>;

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_FACT_H
