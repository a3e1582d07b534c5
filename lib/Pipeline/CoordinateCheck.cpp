//===- CoordinateCheck.cpp - the `coord-check` command -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The test of muP of Yang et al. 2022 (appendix D): train models of several widths for a few steps, and
// see whether activations are as large at every width. What grows with the width after some steps has a
// learning rate, or an initial size, that does not transfer.
//
//===----------------------------------------------------------------------===//
#include "DiagnosticCollector.h"
#include "OutputFiles.h"
#include "meshwright/LocationText.h"
#include "meshwright/ObservedTraining.h"
#include "meshwright/Pipeline.h"

#include "Train/Train.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <random>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

using interp::Tensor;

static constexpr const char *coordCheckUsage =
    "usage: meshwright coord-check MODEL --widths W1,W2,.. [--mup-base CONFIG] [--steps N] [--lr X]\n"
    "                              [--growth F] [--data FILE --tokens TYPE] [flags]\n"
    "  Coordinate check of muP: trains the model at several widths (hidden sizes; the number of heads\n"
    "  and the inner size of MLPs follow in proportion) for N steps (4) at the learning rate X (0.01), on\n"
    "  random tokens or on those of FILE, and prints the mean absolute value of activations by width:\n"
    "  embeddings, the result of each matrix product, the residual stream after each layer, and logits.\n"
    "  A slope is that of log(size) over log(width): 0 is flat. Exits with 0 if nothing grows by more\n"
    "  than F (2) from the smallest width to the largest, 1 if something does, 2 if it cannot be checked.\n"
    "  Accepts the flags of 'meshwright compile', except the output flags and those that change the form\n"
    "  of parameters (--mesh with pipe, --precision, --lora). Runs in the interpreter, in float64 on one\n"
    "  core; --batch is 4 and --seq 64 by default.\n";

//===--- arguments ------------------------------------------------------------===//

namespace {
struct CoordCheckArguments {
  std::vector<int64_t> widths;
  int64_t steps = 4;
  double rate = 0.01, growth = 2;
  std::string data, tokens = "u32";
  CompileOptions options;
};
} // namespace

static Expected<CoordCheckArguments> parseCoordCheck(llvm::ArrayRef<std::string> args) {
  CoordCheckArguments arguments;
  std::vector<std::string> rest;
  auto fail = [](const llvm::Twine &message) { return createStringError(message + "\n" + coordCheckUsage); };
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef word = args[i];
    if (word == "-h" || word == "--help")
      return llvm::make_error<HelpRequested>(coordCheckUsage);
    bool own = llvm::is_contained({"--widths", "--steps", "--lr", "--growth", "--data", "--tokens"}, word);
    if (!own) {
      rest.push_back(args[i]);
      continue;
    }
    if (i + 1 == args.size())
      return fail(word + " needs a value");
    StringRef value = args[++i];
    if (word == "--data") {
      arguments.data = value.str();
    } else if (word == "--tokens") {
      arguments.tokens = value.str();
    } else if (word == "--steps") {
      if (value.getAsInteger(10, arguments.steps) || arguments.steps < 1 || arguments.steps > 1000)
        return fail("--steps '" + value + "' must be a whole number from 1 to 1000");
    } else if (word == "--widths") {
      llvm::SmallVector<StringRef> parts;
      value.split(parts, ',');
      for (StringRef part : parts)
        if (part.getAsInteger(10, arguments.widths.emplace_back()) || arguments.widths.back() < 1 ||
            arguments.widths.back() > INT32_MAX)
          return fail("--widths '" + value + "': '" + part + "' is no width");
      if (!llvm::is_sorted(arguments.widths, std::less_equal<>()) || arguments.widths.size() < 2)
        return fail("--widths '" + value + "' must be at least two widths in ascending order, e.g. "
                    "128,256,512,1024");
    } else {
      double &number = word == "--lr" ? arguments.rate : arguments.growth;
      if (value.getAsDouble(number) || !std::isfinite(number) || number < (word == "--lr" ? 0 : 1))
        return fail(word + " '" + value + "' must be a number of at least " + (word == "--lr" ? "0" : "1"));
    }
  }
  if (arguments.widths.empty())
    return fail("--widths is missing: it says which widths are compared");
  Expected<CompileOptions> options = parseCompileOptions(rest);
  if (!options)
    return options.takeError();
  if (Error error = refuseOutput(*options, "coord-check"))
    return std::move(error);
  if (llvm::sys::path::extension(options->model) == ".mlir")
    return createStringError("'" + options->model + "' has its sizes in its types; coord-check needs a "
                                                    "config.json");
  for (auto [flag, changed] :
       {std::pair("precision", options->precision != MixedPrecision::f32),
        std::pair("lora", options->lora.rank > 0),
        std::pair("mesh", options->mesh.size(options->mesh.named("pipe")) > 1),
        std::pair("remat", llvm::any_of(options->remat.policies,
                                        [](const RematPolicy &policy) { return policy.every != 1; }))})
    if (changed)
      return createStringError(
          llvm::Twine("--") + flag +
          " changes the form of parameters, and activations are measured in float64 on one rank; leave it out");
  if (options->loss == Loss::dpo)
    return createStringError("--loss dpo needs pairs and a reference, and activations are measured on random tokens; "
                             "leave it out: the loss changes no width");
  if (!options->batch)
    options->batch = 4 * options->microbatches;
  if (!options->sequence)
    options->sequence = 64;
  arguments.options = std::move(*options);
  return arguments;
}

//===--- what is measured -----------------------------------------------------===//

namespace {
/// The mean absolute value of an activation at each width.
struct Row {
  std::string name;
  std::vector<double> sizes;
};

/// Those of all activations after each number of steps, in the order of the forward.
struct Sizes {
  /// Sets that of `name` after `step` steps, at the width that is measured now.
  void set(const std::string &name, int64_t step, double size) {
    std::vector<Row> &rows = steps[size_t(step)];
    auto row = llvm::find_if(rows, [&](const Row &row) { return row.name == name; });
    if (row == rows.end())
      row = rows.insert(rows.end(), {name, std::vector<double>(widths, NAN)});
    row->sizes[width] = size;
  }

  size_t widths, width = 0;
  std::vector<std::vector<Row>> steps;
};

/// The values of a forward that are measured, by the ops that make them.
class Watched {
public:
  explicit Watched(ModuleOp forward) {
    auto loss = forward.lookupSymbol<func::FuncOp>("loss");
    SymbolTableCollection symbols;
    watchProducts(loss);
    bool first = true;
    loss.walk([&](train::RepeatOp repeat) {
      func::FuncOp layer = repeat.lookupCallee(symbols);
      if (first && !repeat.getCarry().empty())
        watch(repeat.getCarry()[0], "embeddings");
      first = false;
      if (!begins.insert(&layer.getBody().front().front()).second)
        return;
      watchProducts(layer);
      watch(layer.getBody().front().getTerminator()->getOperand(0), "residual stream");
    });
  }

  /// Records what `op` has made.
  void record(int64_t step, Operation *op, ArrayRef<Tensor> results, Sizes &sizes) {
    if (step != current) {
      current = step;
      layer = -1;
    }
    if (begins.contains(op))
      ++layer;
    auto found = names.find(op);
    if (found == names.end() || !results[0].isFloat())
      return;
    double sum = 0;
    for (double value : results[0].floats())
      sum += std::fabs(value);
    std::string name = found->second;
    if (op->getParentOfType<func::FuncOp>().getSymName() != "loss")
      name = llvm::formatv("layer {0} {1}", layer, name).str();
    sizes.set(name, step, sum / double(std::max<int64_t>(results[0].size(), 1)));
  }

private:
  void watch(Value value, const std::string &name) {
    if (Operation *op = value.getDefiningOp())
      names[op] = name;
  }

  /// Watches matrix products, behind the factors that they have.
  void watchProducts(func::FuncOp function) {
    function.walk([&](train::ContractionOpInterface product) {
      Value value = product->getResult(0);
      while (value.hasOneUse() && isa<train::ScaleOp>(*value.user_begin()))
        value = value.user_begin()->getResult(0);
      watch(value, codegen::locationText(product->getLoc()));
    });
  }

  llvm::DenseMap<Operation *, std::string> names;
  llvm::DenseSet<Operation *> begins; ///< the first op of each function of layers
  int64_t current = -1, layer = -1;
};
} // namespace

/// Random tokens in a file, which is removed again.
static Expected<std::string> writeRandomTokens(int64_t count, int64_t vocabulary) {
  llvm::SmallString<128> path;
  int file = -1;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("coord-check", "tokens", file, path))
    return createStringError("cannot write random tokens: " + error.message());
  llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
  std::mt19937 random(0);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t token = uint32_t(random() % uint64_t(vocabulary));
    char bytes[4] = {char(token), char(token >> 8), char(token >> 16), char(token >> 24)};
    os.write(bytes, 4);
  }
  os.close();
  if (os.has_error()) {
    std::string why = os.error().message();
    os.clear_error();
    llvm::sys::fs::remove(path);
    return createStringError("cannot write random tokens to '" + path + "': " + why);
  }
  return path.str().str();
}

/// Trains at one width.
static Error measure(const CoordCheckArguments &arguments, int64_t width, Sizes &sizes, MLIRContext &context) {
  CompileOptions options = arguments.options;
  options.width = width;
  Expected<OwningOpRef<ModuleOp>> forward = loadModel(options, context, llvm::nulls());
  if (!forward)
    return forward.takeError();
  Expected<OwningOpRef<ModuleOp>> step = compileTo(Phase::step, options, context, llvm::nulls());
  if (!step)
    return step.takeError();
  std::string data = arguments.data, tokens = arguments.tokens;
  if (data.empty()) {
    auto sizeOf = [&](StringRef name) { return train::moduleSize(**forward, name).value_or(1); };
    Expected<std::string> written =
        writeRandomTokens((arguments.steps + 1) * sizeOf(train::batchAttr) * (sizeOf(train::sequenceAttr) + 1),
                          sizeOf(train::vocabularyAttr));
    if (!written)
      return written.takeError();
    data = *written;
    tokens = "u32";
  }
  llvm::scope_exit remove([&] {
    if (arguments.data.empty())
      llvm::sys::fs::remove(data);
  });
  std::string rate;
  llvm::raw_string_ostream(rate) << llvm::format("%.17g", arguments.rate);
  DiagnosticCollector diagnostics(context);
  Watched watched(**forward);
  Error error = interp::observeTraining(
      **forward, **step,
      {"--data", data, "--tokens", tokens, "--steps", std::to_string(arguments.steps), "--lr",
       rate},
      [&](int64_t t, Operation *op, ArrayRef<Tensor> results) { watched.record(t, op, results, sizes); });
  if (error && diagnostics.hasErrors())
    return diagnostics.take(toString(std::move(error)));
  return error;
}

//===--- what is said ---------------------------------------------------------===//

/// The slope of log(size) over log(width), by least squares.
static double slopeOf(ArrayRef<int64_t> widths, ArrayRef<double> sizes) {
  double x = 0, y = 0, xx = 0, xy = 0, n = double(widths.size());
  for (auto [width, size] : llvm::zip_equal(widths, sizes)) {
    double a = std::log(double(width)), b = std::log(size);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

/// How many times the size at the smallest width the largest size is. What is zero at all widths does not grow.
static double growthOf(ArrayRef<double> sizes) {
  double largest = 0;
  for (double size : sizes)
    largest = std::isfinite(size) ? std::max(largest, size) : INFINITY;
  return largest == 0 ? 1 : largest / sizes.front();
}

static void printTable(ArrayRef<int64_t> widths, const Sizes &sizes, llvm::raw_ostream &os) {
  size_t longest = 12;
  for (const std::vector<Row> &rows : sizes.steps)
    for (const Row &row : rows)
      longest = std::max(longest, row.name.size());
  for (auto [step, rows] : llvm::enumerate(sizes.steps)) {
    os << llvm::left_justify(llvm::formatv("after {0} steps", step).str(), longest);
    for (int64_t width : widths)
      os << llvm::formatv("{0,11:N0}", width);
    os << "   slope\n";
    for (const Row &row : rows) {
      os << llvm::left_justify(row.name, longest);
      for (double size : row.sizes)
        os << llvm::format("%11.4g", size);
      os << llvm::format("%8.2f\n", slopeOf(widths, row.sizes));
    }
  }
}

/// Says what grows most, and whether it is more than it may; true if it is.
static bool printVerdict(const CoordCheckArguments &arguments, const Sizes &sizes, llvm::raw_ostream &os) {
  double worst = 0;
  std::string name;
  int64_t after = 0, grow = 0, all = 0;
  for (auto [step, rows] : llvm::enumerate(sizes.steps))
    for (const Row &row : rows) {
      double growth = growthOf(row.sizes);
      ++all;
      grow += growth > arguments.growth;
      if (growth > worst) {
        worst = growth;
        name = row.name;
        after = int64_t(step);
      }
    }
  std::string most = llvm::formatv("{0} after {1} steps, {2:F2}x over widths {3:N0} to {4:N0}", name, after,
                                   worst, arguments.widths.front(), arguments.widths.back())
                         .str();
  if (!grow)
    os << llvm::formatv("flat within {0:F2}x: what grows most is {1}\n", arguments.growth, most);
  else
    os << llvm::formatv("grows: {0} of {1} values by more than {2:F2}x, most {3}\n", grow, all,
                        arguments.growth, most);
  return grow > 0;
}

Expected<bool> checkCoordinates(llvm::ArrayRef<std::string> args, MLIRContext &context,
                                llvm::raw_ostream &os) {
  Expected<CoordCheckArguments> arguments = parseCoordCheck(args);
  if (!arguments)
    return arguments.takeError();
  const CompileOptions &options = arguments->options;
  Sizes sizes{arguments->widths.size(), 0, {}};
  sizes.steps.resize(size_t(arguments->steps) + 1);
  auto fail = [](int64_t width, Error error) {
    return createStringError("width " + llvm::Twine(width) + ": " + toString(std::move(error)));
  };
  // Widths that are none are refused before the first is trained.
  for (int64_t width : arguments->widths) {
    CompileOptions wide = options;
    wide.width = width;
    Expected<OwningOpRef<ModuleOp>> module = loadModel(wide, context, llvm::nulls());
    if (!module)
      return fail(width, module.takeError());
  }
  for (auto [i, width] : llvm::enumerate(arguments->widths)) {
    sizes.width = i;
    if (Error error = measure(*arguments, width, sizes, context))
      return fail(width, std::move(error));
  }
  os << "mean absolute values, "
     << (options.mupBase.empty() ? std::string("standard parametrization") : "muP with base " + options.mupBase)
     << ", " << optionText(options.optimizer) << " at --lr " << llvm::format("%g", arguments->rate) << "\n";
  printTable(arguments->widths, sizes, os);
  return printVerdict(*arguments, sizes, os);
}

} // namespace meshwright
