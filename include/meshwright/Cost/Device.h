//===- Device.h - what a device and its links can do ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The one object that passes and reports ask what something costs, in seconds, bytes and
// floating-point operations (FLOPs). CostTable.cpp has the numbers.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_DEVICE_H
#define MESHWRIGHT_COST_DEVICE_H

#include "meshwright/Cost/ProductTiles.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <optional>
#include <string>

namespace meshwright::cost {

/// A rate that depends on how much is done at once, such as FLOPs a second by the FLOPs of a call.
class Rate {
public:
  struct Point {
    double size, rate;
  };
  /// The same rate for every size.
  Rate(double rate) : points{{1, rate}} {}
  /// By ascending size. Between points time is a power of size; a larger size has the last rate.
  /// A smaller one takes as long as the first, which is what a call takes at least.
  Rate(std::initializer_list<Point> points) : points(points) {}
  Rate(llvm::ArrayRef<Point> points) : points(points) {}

  double at(double size) const;
  double seconds(double size) const { return size > 0 ? size / at(size) : 0; }
  /// The rate between two points; outside of them that of the nearest.
  double between(double size) const;
  /// Of the largest sizes.
  double peak() const { return points.back().rate; }
  llvm::ArrayRef<Point> getPoints() const { return points; }

private:
  llvm::SmallVector<Point, 1> points;
};

/// A way to other devices.
struct Link {
  double latency;   ///< seconds that a message takes however short it is
  double bandwidth; ///< bytes a second that a device sends, in one direction

  /// Seconds for `bytes` in so many messages, one after the other (Hockney 1994).
  double seconds(double bytes, double messages = 1) const {
    return messages * latency + bytes / bandwidth;
  }

  /// Bytes of a call of which a ring of so many devices spends at most a fifth of its time waiting for messages: it waits
  /// for one of each other device, however short they are.
  double bytesOfLongCall(int64_t devices) const { return 4 * double(devices - 1) * latency * bandwidth; }
};

/// Rates by the type of operands.
struct RatesByType {
  Rate f32;
  Rate narrow; ///< bf16 and f16, with sums in f32

  const Rate &ofBits(unsigned bits) const { return bits <= 16 ? narrow : f32; }
};

struct Device {
  std::string name;        ///< in options and cluster files
  std::string description; ///< "an H100 SXM"
  RatesByType products; ///< FLOPs a second of matrix products by the FLOPs of a call, ...
  /// ... of attention and its gradient by the keys of a sequence, ...
  RatesByType attention, attentionGrad;
  /// The same in 16 bits of heads of at most 64 elements; one point of rate 0: as of others.
  Rate smallHeads{0}, smallHeadsGrad{0};
  double groupedShare = 1; ///< of the rate of products that products of experts reach
  Rate kernels;  ///< ... and generated kernels, which compute in f32
  Rate memory;   ///< bytes a second, read and written, by the bytes of a kernel
  double launch; ///< seconds from a kernel to the next one beside what they do
  /// Fewest rows of a product that is as fast, row by row, as one of more rows.
  int64_t productRows;
  Link machine; ///< to devices of its own machine
  Link network; ///< to devices of others
  Link host;    ///< to the memory of the host
  double capacity = 0; ///< bytes of memory; 0: not known
  /// FLOPs a second of products that a data sheet promises, which utilization is measured against.
  double peakF32 = 0, peakNarrow = 0;
  /// Evaluations a second in generated kernels of what takes more than one instruction for an
  /// element, by the name of the op (CallWork::functions); those that are not here take nothing.
  std::map<std::string, double> functions = {};
  /// Bytes a second with which a matrix product's operands and result are copied before and after
  /// it is computed, as libraries for CPUs do; 0: they are not, or beside it.
  struct {
    double f32 = 0, narrow = 0;
    double seconds(unsigned bits, double bytes) const {
      double rate = bits <= 16 ? narrow : f32;
      return rate > 0 ? bytes / rate : 0;
    }
  } packing = {};
  /// How products of 16 bits are computed, where that was measured; it says how long they take
  /// instead of `products`.
  std::optional<ProductTiles> tiles = {};
  /// The standard deviation of the speeds of devices of this type, as a part of their mean.
  double spread = 0;
  /// To the SSD, whose bandwidth is of one direction and of all ranks of a machine that share it.
  Link ssd = {0, 0};

  /// By which factor the slowest of `devices` devices computes longer than one of mean speed, as
  /// expected where speeds are normally distributed: who waits for all waits for that one.
  double slowest(int64_t devices) const;

  /// FLOPs that a byte a device sends is worth: what it computes in products of 16 bits while it
  /// sends one to another device of its machine.
  double flopsPerByteSent() const { return products.narrow.peak() / machine.bandwidth; }
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_DEVICE_H
