//===- Reference.cpp - kernel primitives in double precision ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

static ArrayRef<int64_t> extentsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}
static int64_t sizeOf(ArrayRef<int64_t> shape) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  return size;
}
static SmallVector<int64_t> indexOf(int64_t linear, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t d = int64_t(shape.size()) - 1; d >= 0; --d) {
    index[d] = linear % shape[d];
    linear /= shape[d];
  }
  return index;
}
static int64_t linearOf(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [i, extent] : llvm::zip(index, shape))
    linear = linear * extent + i;
  return linear;
}

/// One element of an element-wise op; `out` has one value a result.
static void element(Operation *op, ArrayRef<double> x, double *out) {
  auto bits = [&](unsigned i) { return uint32_t(int64_t(x[i])); };
  auto word = [](uint64_t value) { return double(int32_t(uint32_t(value))); };
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::AddFOp>([&](auto) { *out = x[0] + x[1]; })
      .Case<arith::SubFOp>([&](auto) { *out = x[0] - x[1]; })
      .Case<arith::MulFOp>([&](auto) { *out = x[0] * x[1]; })
      .Case<arith::DivFOp>([&](auto) { *out = x[0] / x[1]; })
      .Case<arith::NegFOp>([&](auto) { *out = -x[0]; })
      .Case<arith::MaximumFOp>([&](auto) { *out = std::max(x[0], x[1]); })
      .Case<arith::MinimumFOp>([&](auto) { *out = std::min(x[0], x[1]); })
      .Case<arith::CmpFOp>([&](arith::CmpFOp op) {
        *out = arith::applyCmpPredicate(op.getPredicate(), APFloat(x[0]), APFloat(x[1]));
      })
      .Case<arith::FPToSIOp>([&](auto) { *out = std::trunc(x[0]); })
      .Case<arith::ExtSIOp>([&](auto) { *out = x[0]; })
      .Case<arith::TruncIOp>([&](arith::TruncIOp op) {
        *out = double(llvm::SignExtend64(bits(0), getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth()));
      })
      .Case<arith::SelectOp>([&](auto) { *out = x[0] ? x[1] : x[2]; })
      .Case<arith::SIToFPOp>([&](auto) { *out = x[0]; })
      .Case<arith::ExtFOp>([&](auto) { *out = x[0]; })
      .Case<arith::TruncFOp>([&](arith::TruncFOp op) {
        auto type = cast<FloatType>(getElementTypeOrSelf(op.getType()));
        bool lossy;
        APFloat number(static_cast<double>(static_cast<float>(x[0])));
        number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
        *out = number.convertToDouble();
      })
      .Case<arith::ExtUIOp>([&](auto) { *out = x[0]; })
      .Case<arith::AddIOp>([&](auto) { *out = word(bits(0) + bits(1)); })
      .Case<arith::SubIOp>([&](auto) { *out = word(bits(0) - bits(1)); })
      .Case<arith::MulIOp>([&](auto) { *out = word(uint64_t(bits(0)) * bits(1)); })
      .Case<arith::DivUIOp>([&](auto) { *out = word(bits(0) / bits(1)); })
      .Case<arith::RemUIOp>([&](auto) { *out = word(bits(0) % bits(1)); })
      .Case<arith::AndIOp>([&](auto) { *out = word(bits(0) & bits(1)); })
      .Case<arith::BitcastOp>([&](arith::BitcastOp op) {
        // Between f32 and i32.
        if (isa<FloatType>(getElementTypeOrSelf(op.getType())))
          *out = llvm::bit_cast<float>(bits(0));
        else
          *out = word(llvm::bit_cast<uint32_t>(float(x[0])));
      })
      .Case<arith::XOrIOp>([&](auto) { *out = word(bits(0) ^ bits(1)); })
      .Case<arith::MulUIExtendedOp>([&](auto) {
        uint64_t product = uint64_t(bits(0)) * bits(1);
        out[0] = word(product);
        out[1] = word(product >> 32);
      })
      .Case<arith::CmpIOp>([&](arith::CmpIOp cmp) {
        switch (cmp.getPredicate()) {
        case arith::CmpIPredicate::eq:
          *out = x[0] == x[1];
          break;
        case arith::CmpIPredicate::slt:
          *out = x[0] < x[1];
          break;
        case arith::CmpIPredicate::ult:
          *out = bits(0) < bits(1);
          break;
        case arith::CmpIPredicate::uge:
          *out = bits(0) >= bits(1);
          break;
        default:
          llvm::report_fatal_error("reference: comparison not known");
        }
      })
      .Case<math::AbsFOp>([&](auto) { *out = std::fabs(x[0]); })
      .Case<math::ExpOp>([&](auto) { *out = std::exp(x[0]); })
      .Case<math::LogOp>([&](auto) { *out = std::log(x[0]); })
      .Case<math::SqrtOp>([&](auto) { *out = std::sqrt(x[0]); })
      .Case<math::TanhOp>([&](auto) { *out = std::tanh(x[0]); })
      .Case<math::ErfOp>([&](auto) { *out = std::erf(x[0]); })
      // Angles are rounded to f32 before: compare at the same angle.
      .Case<math::SinOp>([&](auto) { *out = std::sin(double(float(x[0]))); })
      .Case<math::CosOp>([&](auto) { *out = std::cos(double(float(x[0]))); })
      .Default([](Operation *op) {
        llvm::report_fatal_error("reference: op not known: " + Twine(op->getName().getStringRef()));
      });
}

std::vector<Values> test::evaluate(func::FuncOp kernel, const std::vector<Values> &arguments) {
  DenseMap<Value, Values> known;
  for (auto [argument, values] : llvm::zip(kernel.getArguments(), arguments))
    known[argument] = values;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    SmallVector<const Values *> in;
    for (Value operand : op.getOperands())
      in.push_back(&known.find(operand)->second);
    auto shape = extentsOf(op.getResult(0));
    std::vector<Values> out(op.getNumResults(), Values(sizeOf(shape)));
    auto inShape = [&](unsigned i) { return extentsOf(op.getOperand(i)); };
    auto fill = [&](llvm::function_ref<double(SmallVector<int64_t>)> at) {
      for (int64_t i = 0; i < int64_t(out[0].size()); ++i)
        out[0][i] = at(indexOf(i, shape));
    };
    using Index = SmallVector<int64_t>;
    llvm::TypeSwitch<Operation *>(&op)
        .Case<arith::ConstantOp>([&](arith::ConstantOp constant) {
          auto elements = cast<DenseElementsAttr>(constant.getValue());
          int64_t i = 0;
          if (isa<FloatType>(elements.getElementType()))
            for (APFloat value : elements.getValues<APFloat>())
              out[0][i++] = value.convertToDouble();
          else
            for (APInt value : elements.getValues<APInt>())
              out[0][i++] = double(value.getSExtValue());
        })
        .Case<train::BroadcastOp>([&](train::BroadcastOp broadcast) {
          fill([&](Index index) {
            Index inner;
            for (auto [d, i] : llvm::enumerate(index))
              if (!llvm::is_contained(broadcast.getDims(), int64_t(d)))
                inner.push_back(i);
            return (*in[0])[linearOf(inner, inShape(0))];
          });
        })
        .Case<train::ReduceOp>([&](train::ReduceOp reduce) {
          bool max = reduce.getKind() == train::ReduceKind::Max;
          std::fill(out[0].begin(), out[0].end(), max ? -INFINITY : 0.0);
          for (int64_t i = 0; i < int64_t(in[0]->size()); ++i) {
            Index index = indexOf(i, inShape(0)), kept;
            for (auto [d, at] : llvm::enumerate(index))
              if (!llvm::is_contained(reduce.getDims(), int64_t(d)))
                kept.push_back(at);
            double &cell = out[0][linearOf(kept, shape)];
            cell = max ? std::max(cell, (*in[0])[i]) : cell + (*in[0])[i];
          }
        })
        .Case<train::IotaOp>([&](train::IotaOp iota) {
          fill([&](Index index) { return double(index[iota.getDim()]); });
        })
        .Case<train::GatherRowsOp>([&](auto) {
          int64_t rowSize = sizeOf(inShape(0).drop_front());
          for (int64_t i = 0; i < int64_t(out[0].size()); ++i) {
            auto row = int64_t((*in[1])[i / rowSize]);
            bool exists = row >= 0 && row < inShape(0)[0];
            out[0][i] = exists ? (*in[0])[row * rowSize + i % rowSize] : 0;
          }
        })
        .Case<train::ScatterRowsOp>([&](auto) {
          if (in.size() > 2)
            out[0] = *in[2];
          int64_t rowSize = shape.back();
          for (int64_t i = 0; i < int64_t(in[0]->size()); ++i)
            if (auto row = int64_t((*in[1])[i / rowSize]); row >= 0 && row < shape[0])
              out[0][row * rowSize + i % rowSize] += (*in[0])[i];
        })
        .Case<train::SliceOp>([&](auto) {
          fill([&](Index index) { return (*in[0])[linearOf(index, inShape(0))]; });
        })
        .Case<train::PadOp>([&](train::PadOp pad) {
          int64_t d = pad.getDim();
          fill([&](Index index) {
            index[d] -= pad.getFrom();
            return index[d] >= 0 && index[d] < inShape(0)[d] ? (*in[0])[linearOf(index, inShape(0))]
                                                             : double(int64_t(pad.getValue()));
          });
        })
        .Case<train::DynamicSliceOp>([&](train::DynamicSliceOp slice) {
          fill([&](Index index) {
            index[slice.getDim()] += int64_t((*in[1])[0]);
            return (*in[0])[linearOf(index, inShape(0))];
          });
        })
        .Case<train::TransposeBlocksOp>([&](auto) {
          fill([&](Index index) {
            std::swap(index[0], index[1]);
            return (*in[0])[linearOf(index, inShape(0))];
          });
        })
        .Case<train::RotateHalfOp>([&](auto) {
          int64_t half = shape.back() / 2;
          fill([&](Index index) {
            bool first = index.back() < half;
            index.back() += first ? half : -half;
            return (first ? -1.0 : 1.0) * (*in[0])[linearOf(index, shape)];
          });
        })
        .Case<train::DuplicateHalfOp>([&](auto) {
          fill([&](Index index) {
            index.back() %= shape.back() / 2;
            return (*in[0])[linearOf(index, inShape(0))];
          });
        })
        .Default([&](Operation *) {
          SmallVector<double> x(in.size()), results(out.size());
          for (int64_t i = 0; i < int64_t(out[0].size()); ++i) {
            for (unsigned k = 0; k < in.size(); ++k)
              x[k] = (*in[k])[i];
            element(&op, x, results.data());
            for (unsigned k = 0; k < out.size(); ++k)
              out[k][i] = results[k];
          }
        });
    for (auto [result, values] : llvm::zip(op.getResults(), out))
      known[result] = std::move(values);
  }
  std::vector<Values> results;
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    results.push_back(known.find(value)->second);
  return results;
}
