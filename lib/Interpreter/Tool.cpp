//===- Tool.cpp - the command line of meshwright-interpret ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/InterpretTool.h"

#include "Dist/Programs.h"
#include "Interpreter/Compare.h"
#include "Interpreter/Training.h"
#include "meshwright/InputFile.h"
#include "meshwright/IrText.h"
#include "meshwright/Json.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/ShortMessage.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;
namespace cl = llvm::cl;

namespace {
/// What the command line says; everything after --train is the executable's.
struct Arguments {
  std::string file, other, function;
  RandomOptions random;
  double tolerance = 1e-9, gradientsTolerance = 1e-7;
  std::vector<std::string> inputs;
  bool isTraining = false;
  std::vector<std::string> training;
  std::string gradientsOut, expect, expectGradients;
};
} // namespace

static int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "meshwright-interpret") << shortMessage(message.str()) << "\n";
  return 1;
}
static int fail(llvm::Error error) { return fail(llvm::toString(std::move(error))); }

//===--- random runs ----------------------------------------------------------===//

static void print(const NamedTensor &named) {
  constexpr int64_t most = 64;
  const Tensor &value = named.value;
  llvm::outs() << named.name << " : " << value.type() << " = ";
  if (value.rank() > 0)
    llvm::outs() << "[";
  for (int64_t i = 0; i < std::min(value.size(), most); ++i) {
    if (i)
      llvm::outs() << ", ";
    if (value.isFloat())
      llvm::outs() << llvm::format("%.9g", value.floats()[i]);
    else
      llvm::outs() << value.integers()[i];
  }
  if (value.size() > most)
    llvm::outs() << ", ...";
  if (value.rank() > 0)
    llvm::outs() << "]";
  if (value.size() > most && value.isFloat())
    llvm::outs() << llvm::format(" norm %.9g", norm(value));
  llvm::outs() << "\n";
}

/// The function to run: the one asked for, or the only one that is not private, or @main.
static llvm::Expected<std::string> functionName(ModuleOp module, StringRef asked) {
  if (!asked.empty())
    return asked.str();
  SmallVector<StringRef> names;
  for (auto function : dist::programsOf(module)[0].getOps<FunctionOpInterface>())
    if (cast<SymbolOpInterface>(*function).isPublic())
      names.push_back(cast<SymbolOpInterface>(*function).getName());
  if (names.size() == 1)
    return names[0].str();
  if (names.empty() || is_contained(names, "main"))
    return "main";
  return llvm::createStringError("several functions can be run; choose one: --function " +
                                 join(names, ", --function "));
}

/// Fills `inputs` from --input NAME=random|FILE, for the types of `function`.
static llvm::Error readInputs(ModuleOp module, StringRef name, Arguments &arguments) {
  auto function = dist::programsOf(module)[0].lookupSymbol<FunctionOpInterface>(name);
  for (StringRef input : arguments.inputs) {
    auto [key, from] = input.split('=');
    if (from.empty())
      return llvm::createStringError("--input " + input + ": write NAME=random or NAME=FILE");
    if (from == "random")
      continue;
    if (!function)
      return llvm::createStringError("there is no function @" + name);
    bool found = false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (Session::argumentName(function, i) != key)
        continue;
      found = true;
      auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
      if (auto global = function.getArgAttrOfType<TypeAttr>(i, dist::DistDialect::globalAttr))
        type = cast<RankedTensorType>(global.getValue());
      llvm::Expected<Tensor> value = readTensor(from, key, type);
      if (!value)
        return value.takeError();
      arguments.random.inputs[key] = *value;
    }
    if (!found)
      return llvm::createStringError("--input " + input + ": @" + name + " has no input " + key);
  }
  return llvm::Error::success();
}

static int runRandom(ModuleOp module, Arguments &arguments) {
  auto name = functionName(module, arguments.function);
  if (!name)
    return fail(name.takeError());
  if (llvm::Error error = readInputs(module, *name, arguments))
    return fail(std::move(error));
  auto values = runOnRandom(module, *name, arguments.random);
  if (failed(values))
    return 1;
  for (const NamedTensor &value : *values)
    if (value.name.front() != '@')
      print(value);
  return 0;
}

static int runComparison(ModuleOp a, ModuleOp b, Arguments &arguments) {
  auto name = functionName(a, arguments.function);
  if (!name)
    return fail(name.takeError());
  if (llvm::Error error = readInputs(a, *name, arguments))
    return fail(std::move(error));
  RandomOptions first = arguments.random;
  if (!isPartitioned(a))
    first.ranks = 0; // --ranks is for the one that was partitioned.
  auto x = runOnRandom(a, *name, first), y = runOnRandom(b, *name, arguments.random);
  if (failed(x) || failed(y))
    return 1;
  std::string report;
  llvm::raw_string_ostream stream(report);
  if (!agree(*x, *y, arguments.tolerance, stream))
    return fail("@" + *name + ": " + StringRef(report).rtrim());
  llvm::outs() << "@" << *name << ": " << x->size() << " results and variables agree\n";
  return 0;
}

//===--- training runs --------------------------------------------------------===//

/// The numbers of a JSON file's array `key`.
static llvm::Expected<std::vector<double>> readNumbers(StringRef path, StringRef key) {
  auto buffer = readInput(path, jsonInput);
  if (!buffer)
    return llvm::createStringError("cannot read " + path + ": " + toString(buffer.takeError()));
  auto json = parseJson((*buffer)->getBuffer());
  if (!json)
    return json.takeError();
  std::vector<double> numbers;
  llvm::json::Object *object = json->getAsObject();
  llvm::json::Array *array = object ? object->getArray(key) : nullptr;
  if (!array)
    return llvm::createStringError(path + " has no array \"" + key + "\"");
  for (const llvm::json::Value &value : *array)
    numbers.push_back(value.getAsNumber().value_or(NAN));
  return numbers;
}

/// Compares with what a JSON file's array `key` says; true if within tolerance.
static llvm::Expected<bool> meets(StringRef path, StringRef key, ArrayRef<double> numbers,
                                  double tolerance) {
  auto expected = readNumbers(path, key);
  if (!expected)
    return expected.takeError();
  if (numbers.size() > expected->size())
    return llvm::createStringError(path + " has only " + Twine(expected->size()) + " numbers in " +
                                   key);
  double worst = 0;
  for (auto [number, want] : llvm::zip(numbers, *expected)) {
    double apart = std::fabs(number - want) / std::fabs(want);
    worst = std::isnan(apart) ? INFINITY : std::max(worst, apart);
  }
  llvm::errs() << key << ": largest relative difference " << llvm::format("%.3g", worst)
               << ", allowed " << llvm::format("%.3g", tolerance) << "\n";
  return worst <= tolerance;
}

static llvm::Expected<bool> gradientsMeet(StringRef path, const Training::Gradients &gradients,
                                          Session &session, double tolerance) {
  double worst = 0, all = 0;
  std::string worstName;
  for (const auto &[variable, value] : gradients.values)
    all = std::hypot(all, norm(value));
  for (const auto &[variable, value] : gradients.values) {
    auto expected = readVariable(path, variable, value.type());
    if (!expected)
      return expected.takeError();
    Difference apart = difference(value, *expected);
    // A gradient that is zero up to rounding (of a bias that softmax cancels) is
    // compared with the size of the others.
    double relative = apart.finite && apart.sameKind
                          ? apart.norm / std::max(norm(*expected), 1e-4 * all)
                          : INFINITY;
    if (relative >= worst) {
      worst = relative;
      worstName = const_cast<train::VariableOp &>(variable).getSymName().str();
    }
  }
  llvm::errs() << "gradients: largest relative difference " << llvm::format("%.3g", worst) << " (@"
               << worstName << "), allowed " << llvm::format("%.3g", tolerance) << "\n";
  return worst <= tolerance;
}

/// JSON has no infinities.
static std::string jsonNumber(double value) {
  if (!std::isfinite(value))
    return "null";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

static int runTraining(ModuleOp module, Arguments &arguments) {
  auto optimizer = Training::optimizerOf(module);
  if (!optimizer)
    return fail(optimizer.takeError());
  auto options = parseTrainingOptions(**optimizer, train::keepsAverages(module),
                                      arguments.training);
  if (!options)
    return fail(options.takeError());
  if (!*options)
    return 0; // Help.
  std::vector<FileArgument> files;
  for (auto [flag, path] : {std::pair("FILE", &arguments.file), {"--init", &(*options)->init},
                            {"--adapter", &(*options)->adapter},
                            {"--expect", &arguments.expect},
                            {"--expect-gradients", &arguments.expectGradients}})
    if (!path->empty())
      files.push_back({flag, *path, FileUse::Input});
  for (const std::string &path : (*options)->data)
    files.push_back({"--data", path, FileUse::Input});
  if (!arguments.gradientsOut.empty())
    files.push_back({"--gradients-out", arguments.gradientsOut, FileUse::Output});
  if (std::string clash = clashOf(files); !clash.empty())
    return fail(clash);
  auto session = Session::create(module, arguments.random.ranks, arguments.random.precision);
  if (failed(session))
    return 1;
  auto training = Training::create(*session, **optimizer, std::move(*options));
  if (!training)
    return fail(training.takeError());

  bool good = true;
  auto note = [&](llvm::Expected<bool> result) -> llvm::Error {
    if (!result)
      return result.takeError();
    good &= *result;
    return llvm::Error::success();
  };
  if (!arguments.gradientsOut.empty() || !arguments.expectGradients.empty()) {
    auto gradients = training->gradients(0);
    if (!gradients)
      return fail(gradients.takeError());
    if (!arguments.gradientsOut.empty())
      if (llvm::Error error = writeVariables(arguments.gradientsOut, gradients->values))
        return fail(std::move(error));
    if (!arguments.expectGradients.empty())
      if (llvm::Error error = note(gradientsMeet(arguments.expectGradients, *gradients, *session,
                                                 arguments.gradientsTolerance)))
        return fail(std::move(error));
  }
  std::vector<double> losses, norms, parts;
  for (int64_t i = 0; i < training->steps(); ++i) {
    auto step = training->step(i);
    if (!step)
      return fail(step.takeError());
    losses.push_back(step->loss);
    norms.push_back(step->gradNorm);
    llvm::outs() << "{\"step\": " << i << ", \"loss\": " << jsonNumber(step->loss)
                 << ", \"grad_norm\": " << jsonNumber(step->gradNorm)
                 << llvm::format(", \"lr\": %.9g", step->lr);
    if (step->auxLoss) {
      parts.push_back(*step->auxLoss);
      llvm::outs() << ", \"aux_loss\": " << jsonNumber(*step->auxLoss);
    }
    if (step->lossScale)
      llvm::outs() << ", \"loss_scale\": " << jsonNumber(*step->lossScale);
    llvm::outs() << "}\n";
    llvm::outs().flush();
  }
  if (!arguments.expect.empty()) {
    if (llvm::Error error = note(meets(arguments.expect, "loss", losses, arguments.tolerance)))
      return fail(std::move(error));
    if (llvm::Error error = note(meets(arguments.expect, "grad_norm", norms, arguments.tolerance)))
      return fail(std::move(error));
    // Files made elsewhere may not have it apart.
    auto known = readNumbers(arguments.expect, "aux_loss");
    if (!known)
      llvm::consumeError(known.takeError());
    else if (parts.size() != losses.size())
      return fail(arguments.expect + " has \"aux_loss\", but the module does not report it");
    else if (llvm::Error error =
                 note(meets(arguments.expect, "aux_loss", parts, arguments.tolerance)))
      return fail(std::move(error));
  }
  return good ? 0 : fail("the run is not the expected one");
}

//===--- command line ---------------------------------------------------------===//

static Arguments parse(int argc, char **argv) {
  Arguments arguments;
  int own = argc;
  for (int i = 1; i < argc; ++i)
    if (StringRef(argv[i]) == "--train") {
      arguments.isTraining = true;
      arguments.training.assign(argv + i + 1, argv + argc);
      own = i;
      break;
    }
  cl::OptionCategory category("meshwright-interpret");
  cl::list<std::string> files(cl::Positional, cl::desc("FILE"), cl::cat(category));
  cl::opt<int64_t> ranks("ranks", cl::init(0), cl::cat(category), cl::value_desc("N"),
                         cl::desc("simulated ranks (default: as many as the module needs)"));
  cl::opt<Precision> precision(
      "precision", cl::init(Precision::F64), cl::cat(category),
      cl::desc("how float types are computed"),
      cl::values(clEnumValN(Precision::F64, "f64", "in f64, nothing is rounded (default)"),
                 clEnumValN(Precision::Quantized, "fp8",
                            "in f64, only results of 8 bits are rounded"),
                 clEnumValN(Precision::Typed, "f32",
                            "each op's results are rounded to their element types")));
  cl::opt<std::string> function(
      "function", cl::cat(category), cl::value_desc("NAME"),
      cl::desc("function to run (default: the only public one, or main)"));
  cl::opt<uint64_t> seed("seed", cl::init(1), cl::cat(category), cl::desc("of random inputs"));
  cl::opt<int64_t> below("integers-below", cl::init(0), cl::cat(category), cl::value_desc("N"),
                         cl::desc("random integers are less than N (default: the vocabulary)"));
  cl::list<std::string> inputs("input", cl::cat(category), cl::value_desc("NAME=random|FILE"),
                               cl::desc("where an input comes from: random (default), or the "
                                        "tensor called NAME of a safetensors file"));
  cl::opt<bool> compare("compare", cl::cat(category),
                        cl::desc("run two files alike and compare all results and variables"));
  cl::opt<double> tolerance("tolerance", cl::init(1e-9), cl::cat(category),
                            cl::desc("of --compare and --expect, relative"));
  cl::opt<std::string> gradientsOut(
      "gradients-out", cl::cat(category), cl::value_desc("FILE"),
      cl::desc("with --train: write the gradients of step 0 in Hugging Face names and layouts"));
  cl::opt<std::string> expect("expect", cl::cat(category), cl::value_desc("FILE.json"),
                              cl::desc("with --train: arrays loss and grad_norm to compare with"));
  cl::opt<std::string> expectGradients(
      "expect-gradients", cl::cat(category), cl::value_desc("FILE.safetensors"),
      cl::desc("with --train: gradients of step 0 to compare with"));
  cl::opt<double> gradientsTolerance("gradients-tolerance", cl::init(1e-7), cl::cat(category),
                                     cl::desc("of --expect-gradients, relative per parameter"));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      own, argv,
      "Runs IR of floors 1 and 2 directly, on simulated ranks where it was partitioned.\n\n"
      "  meshwright-interpret FILE [--function NAME]        on random inputs, printing results\n"
      "  meshwright-interpret --compare A B [--function NAME] [--ranks N]\n"
      "                                                     do both compute the same?\n"
      "  meshwright-interpret FILE --train ARGS...          train: ARGS are those of an "
      "executable\n");
  arguments.random.ranks = ranks;
  arguments.random.precision = precision;
  arguments.random.seed = seed;
  arguments.random.integersBelow = below;
  arguments.function = function;
  arguments.inputs.assign(inputs.begin(), inputs.end());
  arguments.tolerance = tolerance;
  arguments.gradientsTolerance = gradientsTolerance;
  arguments.gradientsOut = gradientsOut;
  arguments.expect = expect;
  arguments.expectGradients = expectGradients;
  if (files.size() != (compare ? 2u : 1u)) {
    fail(compare ? "--compare takes two files" : "name one file of IR, or - for the input");
    exit(1);
  }
  arguments.file = files[0];
  if (compare)
    arguments.other = files[1];
  return arguments;
}

int interp::interpretMain(int argc, char **argv, DialectRegistry &registry) {
  Arguments arguments = parse(argc, argv);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // An op may hold a whole program.
  auto load = [&](StringRef path, llvm::SourceMgr &sources) -> OwningOpRef<ModuleOp> {
    auto buffer = path == "-" ? llvm::errorOrToExpected(llvm::MemoryBuffer::getSTDIN())
                              : readInput(path, irInput);
    if (!buffer) {
      fail("cannot read " + path + ": " + toString(buffer.takeError()));
      return nullptr;
    }
    if (llvm::Error error = checkIrText(path, (*buffer)->getBuffer())) {
      fail(std::move(error));
      return nullptr;
    }
    sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
    FallbackAsmResourceMap ignored; // The configuration of the model is not run.
    return parseSourceFile<ModuleOp>(sources, {&context, /*verifyAfterParse=*/true, &ignored});
  };
  llvm::SourceMgr sources, otherSources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = load(arguments.file, sources), other;
  if (!module)
    return 1;
  if (arguments.isTraining)
    return runTraining(*module, arguments);
  if (arguments.other.empty())
    return runRandom(*module, arguments);
  SourceMgrDiagnosticHandler otherHandler(otherSources, &context);
  other = load(arguments.other, otherSources);
  return other ? runComparison(*module, *other, arguments) : 1;
}
