//===- VerifyCommand.cpp - the `verify` command --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Before a long run: the compiled program, with all of its ranks as threads, trains a small model of the same
// architecture on the same mesh, and the interpreter trains it in float64 as a sequential program.
//
//===----------------------------------------------------------------------===//
#include "DiagnosticCollector.h"
#include "Numbers.h"
#include "OutputFiles.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Frontend.h"
#include "meshwright/JudgedTraining.h"
#include "meshwright/Pipeline.h"

#include "Train/Train.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cmath>
#include <random>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

static constexpr const char *verifyUsage =
    "usage: meshwright verify MODEL [--steps N] [--layers L] [--as-is] [--executable EXE] [--keep DIR] [flags]\n"
    "  Trains a small model of the same architecture with the compiled program, all ranks of --mesh as threads of\n"
    "  this machine, and with the sequential program, in float64 in the interpreter, and compares: the loss and the\n"
    "  norm of the gradients in each of N steps (3); for each parameter, over all layers, the gradients of the first\n"
    "  step and what all steps changed. Data are random tokens. Exits with 0 if all agree, 1 if something differs,\n"
    "  which is named, 2 if nothing can be compared.\n"
    "  The model is cut to L layers (4, or as many first ones as are of all kinds and one for each pipeline chunk) and\n"
    "  to small widths, with as many heads and experts as it has, short sequences and few microbatches; --as-is takes model, --batch, --seq and --microbatches\n"
    "  as they are. --executable compares this executable, compiled with the same flags, instead of compiling one.\n"
    "  --keep leaves the small model, the executable, data and checkpoints in DIR.\n"
    "  Accepts the flags of 'meshwright compile' but the output flags.\n";

//===--- arguments ------------------------------------------------------------===//

namespace {
struct VerifyArguments {
  int64_t steps = 3, layers = 0;
  bool asIs = false;
  std::string executable, keep;
  CompileOptions options;
};

/// What the two programs may differ by, relatively: by rounding, which sums up along the model.
struct Allowed {
  double loss, norm, gradient, update;
};
} // namespace

static constexpr int64_t fewLayers = 4, mostRanks = 64, shortSequence = 32, mostSteps = 1000;

static Expected<VerifyArguments> parseVerify(llvm::ArrayRef<std::string> args) {
  VerifyArguments arguments;
  std::vector<std::string> rest;
  auto fail = [](const llvm::Twine &message) { return createStringError(message + "\n" + verifyUsage); };
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef word = args[i];
    if (word == "-h" || word == "--help")
      return llvm::make_error<HelpRequested>(verifyUsage);
    if (word == "--as-is") {
      arguments.asIs = true;
      continue;
    }
    if (!llvm::is_contained({"--steps", "--layers", "--executable", "--keep"}, word)) {
      rest.push_back(args[i]);
      continue;
    }
    if (i + 1 == args.size())
      return fail(word + " needs a value");
    StringRef value = args[++i];
    if (word == "--executable") {
      arguments.executable = value.str();
    } else if (word == "--keep") {
      arguments.keep = value.str();
    } else {
      int64_t &number = word == "--steps" ? arguments.steps : arguments.layers;
      if (value.getAsInteger(10, number) || number < 1 || number > mostSteps)
        return fail(word + " '" + value + "' must be a whole number from 1 to " + llvm::Twine(mostSteps));
    }
  }
  arguments.asIs |= !arguments.executable.empty();
  if (arguments.asIs && arguments.layers)
    return fail("--layers cuts the model, which --as-is and --executable leave as it is; leave one of them out");
  Expected<CompileOptions> options = parseCompileOptions(rest);
  if (!options)
    return options.takeError();
  if (Error error = refuseOutput(*options, "verify"))
    return std::move(error);
  arguments.options = std::move(*options);
  return arguments;
}

/// Refuses what no threads of this machine can run.
static Error checkProgram(const VerifyArguments &arguments) {
  const CompileOptions &options = arguments.options;
  if (options.getTarget().getName() != "cpu")
    return createStringError("--target " + options.getTarget().getName() +
                             ": verify runs all ranks on this machine's processor; leave the flag out to compare the "
                             "same passes, mesh and schedule with kernels for CPUs");
  if (!options.plan.empty())
    return createStringError("--plan " + options.plan + " searches a layout for the whole model; give verify the "
                             "flags that 'meshwright plan' prints");
  if (options.mesh.size() > mostRanks)
    return createStringError("--mesh has " + llvm::Twine(options.mesh.size()) + " ranks, more than the " +
                             llvm::Twine(mostRanks) + " that verify runs as threads; use a mesh with the same axes, each "
                             "smaller");
  bool isText = llvm::sys::path::extension(options.model) == ".mlir";
  if (isText && !arguments.asIs)
    return createStringError("'" + options.model + "' has its sizes in its types, and cannot be made smaller; add --as-is");
  if (!options.mupBase.empty() && !arguments.asIs)
    return createStringError("--mup-base compares the model's widths with another's, and a smaller model has other "
                             "widths; add --as-is");
  return Error::success();
}

static Allowed allowedOf(const CompileOptions &options, bool routed) {
  // Rounded scores choose other experts for some tokens.
  double most = routed ? 7.5e-1 : 0;
  // The first step has no history to scale by: its small gradients have few digits of E5M2.
  if (options.precision.isFp8() && options.fp8Recipe == Fp8Recipe::delayed)
    most = std::max(most, 5e-1);
  if (options.precision == MixedPrecision::bf16 || options.momentsDtype == MomentType::bf16)
    return {2e-2, 1e-1, std::max(2e-1, most), std::max(3e-1, most)};
  if (options.precision == MixedPrecision::fp16)
    return {5e-3, 5e-2, std::max(1e-1, most), std::max(2e-1, most)};
  // Where a step has the sign or direction of a sum alone, rounding a share e of signs to the other changes it by
  // 2 sqrt(e).
  const train::Optimizer &row = *options.optimizer;
  return {1e-5, 5e-5, 2e-5, row.keeps("variance") && !row.hasDirection() ? 2e-4 : 1e-2};
}

//===--- what is trained ------------------------------------------------------===//

/// Makes the model small, and the batch and sequences short; says so to `os`.
static Error makeSmall(VerifyArguments &arguments, StringRef folder, MLIRContext &context, llvm::raw_ostream &os) {
  CompileOptions &options = arguments.options;
  const dist::Mesh &mesh = options.mesh;
  int64_t stages = mesh.size(mesh.named("pipe"));
  if (arguments.asIs) {
    if (!options.sequence && llvm::sys::path::extension(options.model) != ".mlir")
      options.sequence = 2 * shortSequence;
    os << "verifying '" << options.model << "' as it is";
    return Error::success();
  }
  DiagnosticCollector diagnostics(context);
  FailureOr<Miniature> small = makeMiniature(options.model, std::max<int64_t>(64, 8 * mesh.size()), context);
  if (failed(small))
    return diagnostics.take("cannot read '" + options.model + "'");
  std::string whole = options.model;
  options.model = (folder + "/config.json").str();
  if (Error error = writeFileAtomically(small->config, options.model))
    return error;
  const int64_t parts = 2 * mesh.size(mesh.named("context")) *
                        (options.sequenceParallel ? mesh.size(mesh.named("tensor")) : 1);
  FailureOr<LeastParts> least = leastParts(options.model, std::min(shortSequence, small->positions), context);
  if (failed(least))
    return diagnostics.take("cannot read '" + options.model + "'");
  int64_t sequence = int64_t(llvm::alignTo(uint64_t(least->sequence), uint64_t(parts)));
  options.sequence = std::min(options.sequence ? options.sequence : small->positions, sequence);
  int64_t chunks = stages * options.schedule.chunksPerStage;
  int64_t layers = arguments.layers ? arguments.layers
                                    : std::max({chunks, std::min(fewLayers, small->layers), least->layers});
  options.layers = layers;
  os << llvm::formatv("verifying {0} of {1} layers of '{2}'", layers, small->layers, whole);
  if (small->hidden != small->fullHidden)
    os << llvm::formatv(" with a hidden size of {0} instead of {1}", small->hidden, small->fullHidden);
  if (layers < least->layers)
    os << llvm::formatv(", which lack some kinds of layers (the first {0} have all)", least->layers);
  if (!options.cuts.numbers.empty()) {
    options.cuts = {};
    os << ", cut into equal stages";
  }
  if (options.sourceSequence)
    options.sourceSequence = std::min(options.sourceSequence, 2 * shortSequence);
  // With three, a batch grows twice.
  int64_t fewest = options.batchRamp ? 3 : 2;
  options.microbatches = std::min(options.microbatches, std::max(2 * stages, fewest));
  options.batch = options.leastBatch();
  options.memoryLimit = {};
  return Error::success();
}

//===--- data -----------------------------------------------------------------===//

namespace {
/// Random tokens, in documents where the program tells them apart.
class Data {
public:
  Data(ModuleOp step, bool packed, int64_t steps, StringRef folder) : folder(folder) {
    auto sizeOf = [&](StringRef name) { return train::moduleSize(step, name).value_or(0); };
    batch = sizeOf(train::batchAttr) * (steps + 1);
    sequence = sizeOf(train::sequenceAttr);
    source = sizeOf(train::sourceSequenceAttr);
    pairs = step->hasAttr(train::dpoBetaAttr);
    vocabulary = std::max<int64_t>(sizeOf(train::vocabularyAttr), 1);
    this->packed = packed;
  }

  /// Writes the files; the flags that name them.
  Expected<std::vector<std::string>> write() {
    std::vector<std::string> flags = {"--tokens", "u32"};
    if (pairs) {
      if (Error error = writePairs(flags))
        return std::move(error);
      return flags;
    }
    if (!source && !packed) {
      if (Error error = writeTokens("--data", "tokens.bin", batch * (sequence + 1), flags))
        return std::move(error);
      return flags;
    }
    // Sources and targets are as many; packed documents fill the sequences.
    int64_t mostTarget = source ? sequence : std::max<int64_t>(sequence / 2, 1);
    int64_t documents = source ? batch : 4 * batch + 4;
    if (Error error = writeDocuments("data", "--documents", mostTarget, documents, flags))
      return std::move(error);
    if (source)
      if (Error error = writeDocuments("source", "--source-documents", source, documents, flags))
        return std::move(error);
    return flags;
  }

private:
  Error writeTokens(StringRef flag, StringRef name, int64_t count, std::vector<std::string> &flags) {
    return writeFile(flag, name, randomTokens(count), flags);
  }

  std::string randomTokens(int64_t count) {
    std::string bytes;
    for (int64_t i = 0; i < count; ++i)
      append(bytes, random() % uint64_t(vocabulary), 4);
    return bytes;
  }

  /// Documents of 1 to `most` tokens, so that padding is tried, and at least one more token than all sequences have.
  Error writeDocuments(StringRef name, StringRef flag, int64_t most, int64_t documents, std::vector<std::string> &flags) {
    std::string starts;
    int64_t tokens = 0;
    int64_t least = flag == "--documents" && packed ? batch * (sequence + 1) : 0;
    for (int64_t i = 0; i < documents || tokens < least; ++i) {
      append(starts, uint64_t(tokens), 8);
      tokens += 1 + int64_t(random() % uint64_t(most));
    }
    if (Error error = writeTokens(("--" + name).str(), (name + ".bin").str(), tokens, flags))
      return error;
    return writeFile(flag, (name + ".idx").str(), starts, flags);
  }

  /// Prompts with two completions each, of many lengths, and a reference for which all tokens are alike, as they nearly
  /// are for a model that is not trained: so that no pair is certain, which would have no gradient.
  Error writePairs(std::vector<std::string> &flags) {
    std::string tokens, starts, mask, reference;
    for (int64_t pair = 0; pair < batch / 2; ++pair) {
      std::string prompt = randomTokens(1 + int64_t(random() % uint64_t(sequence)));
      auto promptLength = int64_t(prompt.size() / 4);
      for (int completion = 0; completion < 2; ++completion) {
        append(starts, tokens.size() / 4, 8);
        int64_t length = 1 + int64_t(random() % uint64_t(sequence + 1 - promptLength));
        tokens += prompt + randomTokens(length);
        mask.append(size_t(promptLength), '\0').append(size_t(length), '\1');
        float logProb = -float(double(length) * std::log(double(vocabulary)));
        append(reference, llvm::bit_cast<uint32_t>(logProb), 4);
      }
    }
    if (Error error = writeFile("--data", "data.bin", tokens, flags))
      return error;
    if (Error error = writeFile("--documents", "data.idx", starts, flags))
      return error;
    if (Error error = writeFile("--loss-mask", "data.mask", mask, flags))
      return error;
    return writeFile("--reference-log-probs", "data.f32", reference, flags);
  }

  Error writeFile(StringRef flag, StringRef name, StringRef bytes, std::vector<std::string> &flags) {
    std::string path = folder + "/" + name.str();
    flags.insert(flags.end(), {flag.str(), path});
    return writeFileAtomically(bytes, path);
  }

  static void append(std::string &bytes, uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes += char(value >> (8 * i));
  }

  std::string folder;
  int64_t batch, sequence, source, vocabulary;
  bool packed, pairs;
  std::mt19937_64 random{1};
};
} // namespace

//===--- the compiled program -------------------------------------------------===//

/// Runs the executable on all ranks; an error has the end of what it said.
static Error runRanks(StringRef executable, int64_t ranks, std::vector<std::string> words, StringRef log) {
  words.insert(words.begin(), executable.str());
  if (ranks > 1)
    words.insert(words.end(), {"--ranks", std::to_string(ranks)});
  std::vector<StringRef> args(words.begin(), words.end());
  std::string message;
  int code = llvm::sys::ExecuteAndWait(executable, args, std::nullopt, {StringRef(), log, log}, 0, 0, &message);
  if (code == 0)
    return Error::success();
  auto text = llvm::MemoryBuffer::getFile(log);
  return createStringError("'" + executable + "' ended with " + llvm::Twine(code) + ": " + message +
                           (text ? (*text)->getBuffer().take_back(1000).trim() : ""));
}

/// The numbers of each step that the executable's --metrics have.
static Error readMetrics(StringRef path, std::vector<double> &losses, std::vector<double> &norms) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + buffer.getError().message());
  llvm::SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    Expected<llvm::json::Value> json = llvm::json::parse(line);
    if (!json)
      return json.takeError();
    const llvm::json::Object *object = json->getAsObject();
    if (!object || !object->get("loss"))
      continue;
    losses.push_back(object->getNumber("loss").value_or(NAN));
    norms.push_back(object->getNumber("grad_norm").value_or(NAN));
  }
  return Error::success();
}

//===--- what is said ---------------------------------------------------------===//

static double largestDifference(ArrayRef<double> found, ArrayRef<double> right) {
  double largest = found.size() == right.size() ? 0 : INFINITY;
  for (auto [a, b] : llvm::zip(found, right)) {
    double apart = a == b ? 0 : std::fabs(a - b) / std::fabs(b);
    largest = std::isfinite(apart) ? std::max(largest, apart) : INFINITY;
  }
  return largest;
}

/// Prints a line for each quantity, and which differ; whether one does.
static bool printVerdict(const interp::JudgedRun &right, ArrayRef<double> losses, ArrayRef<double> norms,
                         const Allowed &allowed, llvm::raw_ostream &os) {
  size_t longest = 24;
  for (const interp::ParameterError &parameter : right.parameters)
    longest = std::max(longest, parameter.name.size() + 2);
  // A wrong gradient changes the updates of other parameters, too: it is said first.
  std::string causes, updates;
  size_t count = 0, all = 0;
  auto judge = [&](const llvm::Twine &what, double error, double most, bool isUpdate = false) {
    ++all;
    if (error <= most)
      return "";
    ++count;
    llvm::raw_string_ostream(isUpdate ? updates : causes)
        << "differs: " << what << llvm::format(" by %.3g, allowed %.3g\n", error, most);
    return " !";
  };
  double loss = largestDifference(losses, right.losses), norm = largestDifference(norms, right.norms);
  os << llvm::left_justify("relative difference", longest) << llvm::format("%12s%12s\n", "found", "allowed");
  os << llvm::left_justify("loss", longest) << llvm::format("%12.2g%12.2g", loss, allowed.loss)
     << judge("the loss", loss, allowed.loss) << "\n";
  os << llvm::left_justify("norm of the gradients", longest) << llvm::format("%12.2g%12.2g", norm, allowed.norm)
     << judge("the norm of the gradients", norm, allowed.norm) << "\n";
  bool shown = llvm::any_of(right.parameters, [](const auto &parameter) { return parameter.gradient.has_value(); });
  os << llvm::left_justify("parameter", longest) << llvm::format("%12s%12s\n", shown ? "gradient" : "", "update");
  for (const interp::ParameterError &parameter : right.parameters) {
    os << llvm::left_justify("  " + parameter.name, longest);
    StringRef mark = "";
    if (parameter.gradient) {
      os << llvm::format("%12.2g", *parameter.gradient);
      mark = judge("the gradient of " + llvm::Twine(parameter.name), *parameter.gradient, allowed.gradient);
    } else {
      os.indent(12);
    }
    os << llvm::format("%12.2g", parameter.update);
    StringRef other = judge("the update of " + llvm::Twine(parameter.name), parameter.update, allowed.update, /*isUpdate=*/true);
    os << (mark.empty() ? other : mark) << "\n";
  }
  os << llvm::left_justify("  allowed", longest);
  if (shown)
    os << llvm::format("%12.2g", allowed.gradient);
  else
    os.indent(12);
  os << llvm::format("%12.2g\n", allowed.update);
  if (count)
    os << causes << updates << count << " of " << all << " quantities differ from the sequential program\n";
  else
    os << "all " << all << " quantities agree with the sequential program in float64\n";
  return count > 0;
}

/// Whether steps of `module` may have fewer microbatches than the module, which a flag or the module itself says.
static bool mayRamp(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  return step && llvm::any_of(step.getArguments(), [](BlockArgument argument) {
           return train::inputName(argument) == train::microbatchesInput;
         });
}

Expected<bool> verifyTraining(llvm::ArrayRef<std::string> args, MLIRContext &context, llvm::raw_ostream &os) {
  Expected<VerifyArguments> arguments = parseVerify(args);
  if (!arguments)
    return arguments.takeError();
  if (Error error = checkProgram(*arguments))
    return std::move(error);
  llvm::SmallString<128> folder(arguments->keep);
  if (folder.empty()) {
    if (std::error_code code = llvm::sys::fs::createUniqueDirectory("meshwright-verify", folder))
      return createStringError("cannot make a folder for the program and its data: " + code.message());
  } else if (Error error = prepareFolder("keep", folder)) {
    return std::move(error);
  }
  llvm::scope_exit cleanUp([&] {
    if (arguments->keep.empty())
      llvm::sys::fs::remove_directories(folder);
  });
  auto in = [&](StringRef name) { return (folder + "/" + name).str(); };

  if (Error error = makeSmall(*arguments, folder, context, os))
    return std::move(error);
  CompileOptions &options = arguments->options;
  int64_t ranks = options.mesh.size();
  os << llvm::formatv(" on {0} rank{1}, {2}\n", ranks, ranks == 1 ? "" : "s", optionText(options.precision));
  os.flush();
  Expected<OwningOpRef<ModuleOp>> step = compileTo(Phase::step, sequentialOptions(options), context, llvm::nulls());
  if (!step)
    return step.takeError();
  std::string executable = arguments->executable;
  if (executable.empty()) {
    executable = options.output = in("exe");
    options.emit = "exe";
    if (Error error = compile(options, context, llvm::nulls()))
      return std::move(error);
  }

  Expected<std::vector<std::string>> data = Data(**step, options.packed, arguments->steps, folder).write();
  if (!data)
    return data.takeError();
  if (mayRamp(**step)) {
    // The first steps have fewer microbatches.
    int64_t microbatches = train::moduleSize(**step, train::microbatchesAttr).value_or(1);
    int64_t rows = train::moduleSize(**step, train::batchAttr).value_or(1) / microbatches;
    data->insert(data->end(), {"--batch-ramp", llvm::formatv("{0}+{0}:{1}", rows, rows * (microbatches - 1))});
  }
  std::vector<std::string> own; // Flags that the sequential program has no use for.
  if (options.precision == MixedPrecision::fp16)
    own = {"--initial-loss-scale", "1024"};
  interp::JudgedCheckpoints checkpoints;
  Expected<bool> shows = interp::showsGradients(**step);
  if (!shows)
    return shows.takeError();
  if (*shows) {
    Expected<std::vector<std::string>> once = interp::gradientArguments(**step);
    if (!once)
      return once.takeError();
    checkpoints.gradients = in("gradients");
    std::vector<std::string> words = *data;
    llvm::append_range(words, *once);
    llvm::append_range(words, own);
    words.insert(words.end(), {"--save", checkpoints.gradients});
    if (Error error = runRanks(executable, ranks, words, in("gradients.log")))
      return std::move(error);
    checkpoints.gradients += "/latest";
  }
  // Steps that are no multiples of gradients have the size of the rate: a small part of weights, lest the second gradient
  // multiply what the first was rounded by. A large eps keeps elements without a gradient from being divided by their
  // rounding.
  const train::Optimizer &row = *options.optimizer;
  bool isScaled = row.keeps("variance") || row.hasDirection();
  std::vector<std::string> words = *data;
  words.insert(words.end(), {"--steps", std::to_string(arguments->steps), "--lr", isScaled ? "0.0003" : "0.01"});
  // Adafactor's is added to squares.
  for (const train::Hyperparameter &number : row.hyperparameters)
    if (number.name == "eps" && number.most != 0.0)
      words.insert(words.end(), {"--eps", number.initial > 1e-12 ? "0.0001" : "1e-8"});
  std::vector<std::string> whole = words;
  llvm::append_range(whole, own);
  checkpoints.last = in("last");
  std::string metrics = in("metrics.jsonl");
  whole.insert(whole.end(), {"--save", checkpoints.last, "--metrics", metrics});
  if (Error error = runRanks(executable, ranks, whole, in("last.log")))
    return std::move(error);
  checkpoints.last += "/latest";

  std::vector<double> losses, norms;
  if (Error error = readMetrics(metrics, losses, norms))
    return std::move(error);
  DiagnosticCollector diagnostics(context);
  Expected<interp::JudgedRun> right = interp::judgeTraining(**step, words, checkpoints);
  if (!right) {
    Error error = right.takeError();
    return diagnostics.hasErrors() ? diagnostics.take(toString(std::move(error))) : std::move(error);
  }
  return printVerdict(*right, losses, norms, allowedOf(options, right->routed), os);
}

} // namespace meshwright
