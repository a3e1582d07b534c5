//===- Replay.cpp - the `replay` command -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each op is judged for itself: once a value is found right, the interpreter goes on
// with what the executable had. So rounding does not add up over a step, bounds are
// those of one op, and the op that is named is the one that went wrong, not one that
// read what it made.
//
//===----------------------------------------------------------------------===//
#include "ReplayFiles.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/InputFile.h"
#include "meshwright/LocationText.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Session.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

using interp::Tensor;
using interp::TensorList;

//===--- how far two values may be apart --------------------------------------===//

namespace {
/// By how much a value may be off: by a part of its size, 512 (f32), 8 (bf16, f16) or 2 (8 bits) times what one
/// rounding makes, for sums of many terms and for functions that are approximated; and by the
/// distance of numbers below the smallest normal one, which does not shrink with the value.
/// docs/commands.md has the numbers.
struct Tolerance {
  double relative = 0, least = 0x1p-126;

  static Tolerance of(Type type) {
    if (isa<Float8E4M3FNType>(type))
      return {0x1p-3, 0x1p-9};
    if (isa<Float8E5M2Type>(type))
      return {0x1p-2, 0x1p-16};
    return {type.isBF16() ? 0x1p-5 : type.isF16() ? 0x1p-8 : 0x1p-15,
            type.isF16() ? 0x1p-24 : 0x1p-126};
  }
  double at(double size) const { return relative * std::fabs(size) + least; }
};
} // namespace

/// Of an op: that of its narrowest operand or result, or of what a kernel rounds between them.
static Tolerance toleranceOf(Operation *op, interp::RankContext &context) {
  Tolerance tolerance;
  auto include = [&](TypeRange types) {
    for (Type type : types)
      if (isa<FloatType>(getElementTypeOrSelf(type))) {
        Tolerance own = Tolerance::of(getElementTypeOrSelf(type));
        tolerance.relative = std::max(tolerance.relative, own.relative);
        tolerance.least = std::max(tolerance.least, own.least);
      }
  };
  // Numbers of 8 bits are what they were; wider ones kernels may round on their way in.
  include(llvm::to_vector(llvm::make_filter_range(op->getOperandTypes(), [](Type type) {
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth() > 8;
  })));
  include(op->getResultTypes());
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    context.symbols()
        .lookupNearestSymbolFrom(op, launch.getKernelAttr())
        ->walk([&](Operation *inner) { include(inner->getResultTypes()); });
  return tolerance;
}

/// Of the numbers that are finite: a query that sees no key has the logarithm of 0.
static double rootMeanSquare(const Tensor &x) {
  double sum = 0;
  int64_t count = 0;
  for (double element : x.floats())
    if (std::isfinite(element)) {
      sum += element * element;
      ++count;
    }
  return count ? std::sqrt(sum / double(count)) : 0;
}

namespace {
/// Where two values are furthest beyond what is allowed.
struct Divergence {
  int64_t element = -1; ///< none
  double have = 0, want = 0, allowed = 0;
};
} // namespace

static bool isFinite(const Tensor &x) {
  return !x.isFloat() || llvm::all_of(x.floats(), [](double element) { return std::isfinite(element); });
}

/// Codes of 8 bits stand for real numbers, so rounding may change one by a step where the number lies halfway between two codes;
/// at most one in 64 may differ. All other integers must be equal.
static Divergence compareIntegers(const Tensor &have, const Tensor &want) {
  int64_t step = want.elementType().isInteger(8) ? 1 : 0, left = std::max<int64_t>(1, want.size() / 64);
  for (int64_t i = 0; i < want.size(); ++i) {
    int64_t apart = std::abs(have.integers()[i] - want.integers()[i]);
    if (apart > step || (apart > 0 && left-- == 0))
      return {i, double(have.integers()[i]), double(want.integers()[i]), double(step)};
  }
  return {};
}

/// `moved` is empty, or what `want` becomes when operands move a little. `mayOverflow`: whether what is infinite already
/// may make any element infinite, or no number.
static Divergence compare(const Tensor &have, const Tensor &want, Tolerance tolerance,
                          const Tensor &moved, bool mayOverflow = false) {
  Divergence worst;
  if (!want.isFloat())
    return compareIntegers(have, want);
  Tensor rounded = want;
  rounded.round();
  double size = rootMeanSquare(rounded), movement = 0, excess = 0;
  if (moved) {
    for (int64_t i = 0; i < want.size(); ++i) {
      double by = moved.floats()[i] - want.floats()[i];
      movement += std::isfinite(by) ? by * by : 0;
    }
    movement = std::sqrt(movement / double(want.size()));
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    double x = have.floats()[i], y = rounded.floats()[i];
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    double allowed = tolerance.at(std::fabs(y) + size);
    if (moved)
      allowed += 4 * movement + std::fabs(moved.floats()[i] - want.floats()[i]);
    double apart = std::fabs(x - y);
    if (std::isfinite(apart) && apart <= allowed)
      continue;
    // What overflows in a kernel's own type is infinite, or no number, in both.
    if (moved && !std::isfinite(x) &&
        (mayOverflow || x == moved.floats()[i] || (std::isnan(x) && std::isnan(moved.floats()[i]))))
      continue;
    double beyond = std::isfinite(apart) ? apart / allowed : INFINITY;
    if (worst.element < 0 || beyond > excess) {
      worst = {i, x, y, allowed};
      excess = beyond;
    }
  }
  return worst;
}

/// `x` with every finite element off by `tolerance`, up or down. Operands of one op have different `seed`s: errors of equal sign cancel where kernels' errors do not.
static Tensor movedBy(const Tensor &x, Tolerance tolerance, uint64_t seed) {
  if (!x.isFloat())
    return x;
  Tensor result = x;
  double *elements = result.writeFloats();
  uint64_t random = seed;
  for (int64_t i = 0; i < result.size(); ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
    double by = tolerance.at(elements[i]);
    if (std::isfinite(elements[i]))
      elements[i] += random >> 63 ? by : -by;
  }
  return result;
}

/// What a kernel makes of `x` between two of its ops: rounded to its type, as an executable rounds it, and by as much again as 32
/// roundings are in f32; infinite where f16 ends.
static Tensor roundedBetween(const Tensor &x, uint64_t seed) {
  if (!x.isFloat())
    return x;
  Tolerance tolerance = Tolerance::of(x.elementType());
  Tensor result = movedBy(x, {tolerance.relative / 16, tolerance.least}, seed);
  if (x.elementType().isF16())
    result.round();
  return result;
}

/// By how much the elements of `x` may be off, or their sum where nothing cancels.
static Tensor boundsOf(const Tensor &x, Tolerance tolerance) {
  if (!x.isFloat())
    return x;
  Tensor result = x;
  double *elements = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i)
    elements[i] = std::isfinite(elements[i]) ? tolerance.at(elements[i]) : tolerance.least;
  return result;
}

/// x + y, of one shape; x itself if it has no floats.
static Tensor sumOf(const Tensor &x, const Tensor &y) {
  if (!x.isFloat())
    return x;
  Tensor result = x;
  double *elements = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i)
    elements[i] += y.floats()[i];
  return result;
}

//===--- the run --------------------------------------------------------------===//

namespace {
class Replay {
public:
  static Expected<Replay> open(StringRef directory, MLIRContext &context);

  /// Whether all agree; says so, or which op does not, to `os`.
  Expected<bool> run(llvm::raw_ostream &os);

private:
  LogicalResult check(interp::RankContext &context, Operation *op, ArrayRef<Tensor> operands,
                      TensorList &results);
  Error readInputs();
  Error checkEnd(ArrayRef<TensorList> results);
  Error checkState(int64_t rank, StringRef kind, StringRef name, const Tensor &want);
  void report(int64_t rank, const llvm::Twine &what, const Tensor &have, const Tensor &want,
              const Divergence &divergence);
  int64_t ranks() const { return int64_t(dumps.size()); }

  OwningOpRef<ModuleOp> module;
  std::vector<RankDump> dumps;
  SmallVector<FunctionOpInterface> functions; ///< the step of each rank
  std::unique_ptr<interp::Interpreter> interpreter;
  SmallVector<TensorList> arguments;
  bool isMoved = false;           ///< whether an op is computed again with what is a little off
  uint64_t between = 0;           ///< of what is rounded then
  Error error = Error::success(); ///< that ended the run
  std::string divergence;         ///< what was found
};
} // namespace

Expected<Replay> Replay::open(StringRef directory, MLIRContext &context) {
  Replay replay;
  cantFail(std::move(replay.error));
  Expected<RankDump> first = RankDump::open(directory, 0);
  if (!first)
    return first.takeError();
  int64_t ranks = first->ranks, step = first->step;
  replay.dumps.push_back(std::move(*first));
  for (int64_t rank = 1; rank < ranks; ++rank) {
    Expected<RankDump> next = RankDump::open(directory, rank);
    if (!next)
      return next.takeError();
    if (next->ranks != ranks || next->step != step)
      return createStringError("'" + directory + "' has files of different dumps: rank " +
                               llvm::Twine(rank) + " wrote step " + llvm::Twine(next->step) +
                               " of " + llvm::Twine(next->ranks) + " ranks, rank 0 step " +
                               llvm::Twine(step) + " of " + llvm::Twine(ranks));
    replay.dumps.push_back(std::move(*next));
  }
  std::string program = (directory + "/program.mlir").str();
  if (Error error = checkInput(program, irInput))
    return createStringError("cannot read '" + program + "': " + toString(std::move(error)));
  replay.module = parseSourceFile<ModuleOp>(program, &context);
  if (!replay.module)
    return createStringError("cannot read '" + program + "'");
  dist::Mesh mesh;
  if (failed(dist::verifyPrograms(*replay.module)))
    return createStringError("the programs of '" + program + "' do not fit together");
  if (interp::isPartitioned(*replay.module)) {
    dist::MeshOp op = dist::lookupMesh(*replay.module);
    if (!op)
      return createStringError("'" + program + "' has no mesh");
    mesh = op.getMesh();
  }
  if (mesh.size() != ranks)
    return createStringError("'" + program + "' is for " + llvm::Twine(mesh.size()) +
                             " ranks, but " + llvm::Twine(ranks) + " have written");
  SmallVector<ModuleOp> programs = dist::programsOf(*replay.module);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ModuleOp own = *llvm::find_if(
        programs, [&](ModuleOp each) { return dist::runsOn(each, mesh, rank); });
    auto function = own.lookupSymbol<FunctionOpInterface>("step");
    if (!function)
      return createStringError("'" + program + "' has no @step for rank " + llvm::Twine(rank));
    replay.functions.push_back(function);
  }
  replay.interpreter = std::make_unique<interp::Interpreter>(*replay.module, ranks,
                                                             interp::Precision::F64);
  return std::move(replay);
}

/// Whether the executable reads `value`. Loops that ignore their slices of it do not count, nor do ops whose results nothing
/// reads: executables are compiled without them.
static bool isRead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    unsigned i = use.getOperandNumber();
    auto loop = dyn_cast<exec::LoopOp>(op);
    if (loop && i >= loop.getCarry().size() && i < loop.getCarry().size() + loop.getEach().size())
      return isRead(loop.getBlock().getArgument(1 + i)); // Behind the index.
    return op->hasAttr(exec::valueIdAttr) || op->hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(op) ||
           llvm::any_of(op->getResults(), isRead);
  });
}

Error Replay::readInputs() {
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    FunctionOpInterface function = functions[rank];
    for (auto variable : cast<ModuleOp>(function->getParentOp()).getOps<train::VariableOp>()) {
      auto type = cast<RankedTensorType>(variable.getType());
      Expected<Tensor> value =
          dumps[rank].state("before", "variable", variable.getSymName(), type);
      if (!value)
        return value.takeError();
      interpreter->state(rank)[variable.getSymName()] = *value;
    }
    TensorList list;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
      if (!isRead(function.getArgument(i))) {
        list.emplace_back(type); // Executables have no such inputs.
        continue;
      }
      Expected<Tensor> value = dumps[rank].state(
          "before", "input", interp::Session::argumentName(function, i), type);
      if (!value)
        return value.takeError();
      list.push_back(*value);
    }
    arguments.push_back(list);
  }
  return Error::success();
}

void Replay::report(int64_t rank, const llvm::Twine &what, const Tensor &have, const Tensor &want,
                    const Divergence &found) {
  std::string indices;
  int64_t rest = found.element;
  for (int64_t size : llvm::reverse(want.shape())) {
    indices = std::to_string(rest % size) + (indices.empty() ? "" : ", " + indices);
    rest /= size;
  }
  llvm::raw_string_ostream os(divergence);
  os << "rank " << rank << ": " << what << " diverges\n"
     << "  " << want.type() << " element [" << indices << "] is "
     << llvm::format("%.9g, should be %.9g; %.3g apart, allowed %.3g\n", found.have, found.want,
                     std::fabs(found.have - found.want), found.allowed);
  if (want.isFloat())
    os << llvm::format("  norm of the error %.3g of the norm of the value\n",
                       interp::difference(have, want).relative);
}

LogicalResult Replay::check(interp::RankContext &context, Operation *op,
                            ArrayRef<Tensor> operands, TensorList &results) {
  auto number = op->getAttrOfType<IntegerAttr>(exec::valueIdAttr);
  if (!number) {
    if (isMoved)
      for (Tensor &value : results)
        value = roundedBetween(value, ++between);
    return success();
  }
  RankDump &dump = dumps[context.rank()];
  Tolerance tolerance = toleranceOf(op, context);
  TensorList moved;
  // What ranks add may cancel too. All of a group meet again for that, also where only one of them
  // diverges: bounds are summed as values are.
  if (isa<interp::InterpretableCollectiveOpInterface>(op)) {
    TensorList bounds = llvm::map_to_vector(
        operands, [&](const Tensor &x) { return boundsOf(x, tolerance); });
    TensorList summed;
    if (failed(context.compute(op, bounds, summed)))
      return failure();
    for (auto [want, bound] : llvm::zip_equal(results, summed))
      moved.push_back(sumOf(want, bound));
  }
  for (auto [i, want] : llvm::enumerate(results)) {
    Expected<Tensor> have = dump.next(number.getInt(), i, want.type());
    if (!have) {
      error = have.takeError();
      return failure();
    }
    Divergence found;
    if (!want.isUndefined())
      found = compare(*have, want, tolerance, Tensor());
    // What cancels, or is steep, may be off by more: as much as it is when operands are.
    if (found.element >= 0 && (!moved.empty() || !isa<dist::DistDialect>(op->getDialect()))) {
      if (moved.empty()) {
        TensorList near;
        for (auto [number, x] : llvm::enumerate(operands))
          near.push_back(movedBy(x, tolerance, number + 1));
        isMoved = true;
        between = uint64_t(number.getInt()) << 20;
        LogicalResult computed = context.compute(op, near, moved);
        isMoved = false;
        if (failed(computed))
          return failure();
      }
      // A loss scale that is too large: products with zeros are no numbers then, where formulas skip them.
      bool mayOverflow = tolerance.least == Tolerance::of(Float16Type::get(op->getContext())).least &&
                         !llvm::all_of(operands, isFinite);
      found = compare(*have, want, tolerance, moved[i], mayOverflow);
    }
    if (found.element >= 0) {
      std::string name = op->getName().getStringRef().str();
      if (auto launch = dyn_cast<exec::LaunchOp>(op))
        name += (" @" + launch.getKernel()).str();
      report(context.rank(),
             "result " + llvm::Twine(i) + " of " + name + " (exec.value_id " +
                 llvm::Twine(number.getInt()) + ") at " + codegen::locationText(op->getLoc()),
             *have, want, found);
      return failure();
    }
    want = *have;
  }
  return success();
}

/// Compares what a step left in memory with what the values on the way make it.
Error Replay::checkState(int64_t rank, StringRef kind, StringRef name, const Tensor &want) {
  Expected<Tensor> have = dumps[rank].state("after", kind, name, want.type());
  if (!have)
    return have.takeError();
  Divergence found = compare(*have, want, Tolerance::of(want.elementType()), Tensor());
  if (found.element >= 0)
    report(rank, kind + " " + name + " after the step", *have, want, found);
  return Error::success();
}

Error Replay::checkEnd(ArrayRef<TensorList> results) {
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    RankDump &dump = dumps[rank];
    if (dump.taken != dump.count)
      return createStringError("rank " + llvm::Twine(rank) + " has dumped " +
                               llvm::Twine(dump.count) + " values, but the program computes " +
                               llvm::Twine(dump.taken));
    for (auto &variable : interpreter->state(rank)) {
      if (Error error = checkState(rank, "variable", variable.getKey(), variable.getValue()))
        return error;
      if (!divergence.empty())
        return Error::success();
    }
    for (auto [i, value] : llvm::enumerate(results[rank])) {
      if (Error error = checkState(rank, "output",
                                   interp::Session::resultName(functions[rank], i), value))
        return error;
      if (!divergence.empty())
        return Error::success();
    }
  }
  return Error::success();
}

Expected<bool> Replay::run(llvm::raw_ostream &os) {
  if (Error error = readInputs())
    return std::move(error);
  interpreter->observe([&](interp::RankContext &context, Operation *op, ArrayRef<Tensor> operands,
                           TensorList &results) { return check(context, op, operands, results); });
  SmallVector<TensorList> results;
  LogicalResult ran = interpreter->run(functions, arguments, results);
  if (error)
    return std::move(error);
  if (succeeded(ran))
    if (Error error = checkEnd(results))
      return std::move(error);
  if (!divergence.empty()) {
    os << "step " << dumps[0].step << ", " << divergence;
    return false;
  }
  if (failed(ran))
    return createStringError("the interpreter cannot run the program");
  int64_t count = 0;
  for (const RankDump &dump : dumps)
    count += dump.count;
  os << llvm::formatv("step {0}: all {1:N0} values of {2} {3} agree\n", dumps[0].step, count,
                      ranks(), ranks() == 1 ? "rank" : "ranks");
  return true;
}

Expected<bool> replay(StringRef directory, MLIRContext &context, llvm::raw_ostream &os) {
  Expected<Replay> replay = Replay::open(directory, context);
  if (!replay)
    return replay.takeError();
  Expected<bool> agrees = replay->run(os);
  if (!agrees)
    return agrees.takeError();
  return !*agrees;
}

} // namespace meshwright
