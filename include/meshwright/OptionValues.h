//===- OptionValues.h - types of options, and how their values are written --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A type of options has two overloads: parseOption reads a value from text, optionText
// writes it. Flags, recipes and the options of passes all read by them. An enumeration
// only has `namesOf`, the names of its values in order.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_OPTIONVALUES_H
#define MESHWRIGHT_OPTIONVALUES_H

#include "meshwright/Bytes.h"
#include "meshwright/runtime/MemorySpace.h"
#include "meshwright/runtime/Suggestion.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

//===--- enumerations -----------------------------------------------------------===//

using Names = llvm::ArrayRef<llvm::StringLiteral>;

/// The type of weights and activations.
enum class MixedPrecision { f32, bf16, fp16 };
inline Names namesOf(MixedPrecision) {
  static constexpr llvm::StringLiteral names[] = {"f32", "bf16", "fp16"};
  return names;
}

/// The type in which parameters' gradients are summed.
enum class GradientType { f32, bf16 };
inline Names namesOf(GradientType) {
  static constexpr llvm::StringLiteral names[] = {"f32", "bf16"};
  return names;
}

/// The type in which an optimizer keeps its states.
enum class MomentType { f32, bf16 };
inline Names namesOf(MomentType) {
  static constexpr llvm::StringLiteral names[] = {"f32", "bf16"};
  return names;
}

/// The factor of an orthogonalized matrix of m rows and n columns in its step: 0.2 sqrt(max(m, n)), with
/// which steps are as large as those of AdamW (Liu et al. 2025), or sqrt(max(1, m / n)) (Jordan et al.
/// 2024).
enum class MuonScale { matchRmsAdamw, keller };
inline Names namesOf(MuonScale) {
  static constexpr llvm::StringLiteral names[] = {"match-rms-adamw", "keller"};
  return names;
}

/// The polynomials of the Newton-Schulz iteration: five times that of Jordan et al. 2024, or the five
/// of Polar Express (Amsel et al. 2025), each the best after those before it.
enum class MuonCoefficients { keller, polarExpress };
inline Names namesOf(MuonCoefficients) {
  static constexpr llvm::StringLiteral names[] = {"keller", "polar-express"};
  return names;
}

/// What an optimizer keeps of masters: what their parameters do not hold, or all.
enum class MasterStorage { halves, whole };
inline Names namesOf(MasterStorage) {
  static constexpr llvm::StringLiteral names[] = {"halves", "whole"};
  return names;
}

/// Who adds gradients and updates parameters.
enum class DataSync { allReduce, parameterServer };
inline Names namesOf(DataSync) {
  static constexpr llvm::StringLiteral names[] = {"all-reduce", "parameter-server"};
  return names;
}

/// What attention divides where a mesh axis `context` divides sequences. `automatic` is hybrid where the
/// axis has two parts, and ring elsewhere; for targets without calls of a part of the keys it is gather.
enum class ContextParallel { none, gather, ring, ulysses, hybrid, automatic };
inline Names namesOf(ContextParallel) {
  static constexpr llvm::StringLiteral names[] = {"none", "gather", "ring", "ulysses", "hybrid", "auto"};
  return names;
}
/// Whether keys and values go from rank to rank.
inline bool isRing(ContextParallel how) {
  return how == ContextParallel::ring || how == ContextParallel::hybrid;
}

/// Which queries a device computes attention of where `context` divides them: two chunks that
/// together see as much as those of every other device, one of each n queries, or its own.
enum class ContextBalance { zigzag, striped, none };
inline Names namesOf(ContextBalance) {
  static constexpr llvm::StringLiteral names[] = {"zigzag", "striped", "none"};
  return names;
}

/// What the routers of experts add to the loss: what the configuration says, transformers' loss of
/// all layers together, that of Switch Transformers, GShard's, DeepSeek-V3's of each sequence, or
/// nothing.
enum class AuxLoss { config, hf, switchLoss, gshard, sequence, none };
inline Names namesOf(AuxLoss) {
  static constexpr llvm::StringLiteral names[] = {"config", "hf",       "switch",
                                                "gshard", "sequence", "none"};
  return names;
}

/// The tokens of which that loss has statistics.
enum class AuxScope { batch, microbatch, sequence };
inline Names namesOf(AuxScope) {
  static constexpr llvm::StringLiteral names[] = {"batch", "microbatch", "sequence"};
  return names;
}

/// What a step minimizes.
enum class Loss { crossEntropy, dpo };
inline Names namesOf(Loss) {
  static constexpr llvm::StringLiteral names[] = {"cross-entropy", "dpo"};
  return names;
}

enum class Toggle { on, off };
inline Names namesOf(Toggle) {
  static constexpr llvm::StringLiteral names[] = {"on", "off"};
  return names;
}

/// Whether collectives run beside computation; automatic: if the target prefers it.
enum class Overlap { automatic, on, off };
inline Names namesOf(Overlap) {
  static constexpr llvm::StringLiteral names[] = {"auto", "on", "off"};
  return names;
}

/// What of the forward's cheap values the backward finds in memory; automatic: all that the
/// forward writes there anyway, if the plan with them is within --memory-limit.
enum class ResidualChoice { automatic, least, written };
inline Names namesOf(ResidualChoice) {
  static constexpr llvm::StringLiteral names[] = {"auto", "least", "written"};
  return names;
}

namespace dist {
/// How all_reduce is done.
enum class CollectiveAlgorithm {
  /// No messages: the runtime's own.
  Native,
  /// Of those below, the one that is fastest by the alpha-beta model.
  Auto,
  /// All send to rank 0, which sends the sum to all (Li et al. 2014).
  ParameterServer,
  /// The same, one after another.
  Sequential,
  /// Parts go round twice: summed on the first way, complete on the second
  /// (Patarasuk and Yuan 2009).
  Ring,
  /// Everyone sends everything to everyone.
  Parallel,
  /// Partners at distance 1, 2, 4 .. exchange everything (Thakur et al. 2005).
  Doubling,
  /// Partners at distance n/2, n/4 .. exchange halves, then the same backwards
  /// (Rabenseifner 2004).
  HalvingDoubling,
};

inline Names namesOf(CollectiveAlgorithm) {
  static constexpr llvm::StringLiteral names[] = {
      "native", "auto", "parameter-server", "sequential", "ring", "parallel", "doubling",
      "halving-doubling"};
  return names;
}
} // namespace dist

/// An error that says that `text` is none of `names`.
template <typename Choices> std::string notAmong(llvm::StringRef text, const Choices &names) {
  std::string meant = nearestName(text, names);
  return ("'" + text + "' is not supported; " +
          (meant.empty() ? "the" : "did you mean " + meant + "? The") + " choices are " +
          llvm::join(names, ", "))
      .str();
}

template <typename E>
std::enable_if_t<std::is_enum_v<E>, llvm::Error> parseOption(llvm::StringRef text, E &value) {
  Names names = namesOf(E());
  const auto *found = llvm::find(names, text);
  if (found == names.end())
    return llvm::createStringError(notAmong(text, names));
  value = E(found - names.begin());
  return llvm::Error::success();
}

template <typename E> std::enable_if_t<std::is_enum_v<E>, std::string> optionText(E value) {
  return namesOf(value)[size_t(value)].str();
}

//===--- numbers ----------------------------------------------------------------===//

/// An amount of memory, as it was written.
struct Bytes {
  double count = 0;
  std::string text; ///< empty: none is given
};
llvm::Error parseOption(llvm::StringRef text, Bytes &bytes);
inline std::string optionText(const Bytes &bytes) { return bytes.text; }

/// The bytes of a buffer, at least 1.
struct BufferBytes : Bytes {
  BufferBytes() : Bytes{32 << 20, "32MiB"} {}
};
llvm::Error parseOption(llvm::StringRef text, BufferBytes &bytes);

/// A probability, or nothing.
struct Probability {
  std::optional<double> value;
};
llvm::Error parseOption(llvm::StringRef text, Probability &probability);
std::string optionText(const Probability &probability);

/// A multiple of something, above 0; none if the flag is not given.
struct Multiple {
  std::optional<double> value;
};
llvm::Error parseOption(llvm::StringRef text, Multiple &multiple);
std::string optionText(const Multiple &multiple);

/// The number of a token, or nothing.
struct TokenNumber {
  std::optional<int64_t> value;
};
llvm::Error parseOption(llvm::StringRef text, TokenNumber &token);
std::string optionText(const TokenNumber &token);

/// In how many parts the loss is computed; nothing if passes choose.
struct LossParts {
  std::optional<int64_t> value;
};
llvm::Error parseOption(llvm::StringRef text, LossParts &parts);
std::string optionText(const LossParts &parts);

/// Numbers of layers between commas.
struct LayerNumbers {
  std::vector<int64_t> numbers;
};
llvm::Error parseOption(llvm::StringRef text, LayerNumbers &layers);
std::string optionText(const LayerNumbers &layers);

/// Parameters of which all tensors' names match a pattern, and what differs in their updates.
struct ParameterGroup {
  std::string pattern;
  double rate = 1;             ///< of the learning rate
  std::optional<double> decay; ///< of the weight decay; nothing: as without a group
};

/// Groups, of which the first that matches a parameter has it.
struct ParameterGroups {
  std::vector<ParameterGroup> groups;
};
llvm::Error parseOption(llvm::StringRef text, ParameterGroups &groups);
std::string optionText(const ParameterGroups &groups);

/// Patterns of parameters' names in checkpoints.
struct NamePatterns {
  std::vector<std::string> patterns;
};
llvm::Error parseOption(llvm::StringRef text, NamePatterns &names);
std::string optionText(const NamePatterns &names);

/// A memory space by its name, such as "host".
llvm::Error parseOption(llvm::StringRef text, MemorySpace &space);
std::string optionText(MemorySpace space);

/// Where optimizer states, saved activations and parameters of layers are kept.
struct Offload {
  MemorySpace optimizer = MemorySpace::Device, activations = MemorySpace::Device,
              parameters = MemorySpace::Device;
  bool any() const { return isOffload(optimizer) || isOffload(activations) || isOffload(parameters); }
  /// Whether updates go through variables slice by slice.
  bool slicesUpdates() const { return isOffload(optimizer) || isOffload(parameters); }
};
llvm::Error parseOption(llvm::StringRef text, Offload &offload);
std::string optionText(const Offload &offload);

//===--- options of passes --------------------------------------------------------===//

/// The parser by which LLVM's command line reads an option of type T.
template <typename T> class ValueParser : public llvm::cl::basic_parser<T> {
public:
  using llvm::cl::basic_parser<T>::basic_parser;

  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, T &value) {
    llvm::Error error = parseOption(text, value);
    return error && option.error(llvm::toString(std::move(error)));
  }
  static void print(llvm::raw_ostream &os, const T &value) { os << optionText(value); }
  void printOptionDiff(const llvm::cl::Option &option, const T &, const llvm::cl::OptionValue<T> &,
                       size_t width) const {
    this->printOptionNoValue(option, width);
  }
};

} // namespace meshwright

/// Lets options of passes have the type `Type`.
#define MESHWRIGHT_PASS_OPTION(Type)                                                               \
  template <> class llvm::cl::parser<Type> : public ::meshwright::ValueParser<Type> {              \
    using ValueParser::ValueParser;                                                                \
  };

MESHWRIGHT_PASS_OPTION(::meshwright::MixedPrecision)
MESHWRIGHT_PASS_OPTION(::meshwright::GradientType)
MESHWRIGHT_PASS_OPTION(::meshwright::MomentType)
MESHWRIGHT_PASS_OPTION(::meshwright::MuonScale)
MESHWRIGHT_PASS_OPTION(::meshwright::MuonCoefficients)
MESHWRIGHT_PASS_OPTION(::meshwright::MasterStorage)
MESHWRIGHT_PASS_OPTION(::meshwright::ContextParallel)
MESHWRIGHT_PASS_OPTION(::meshwright::ContextBalance)
MESHWRIGHT_PASS_OPTION(::meshwright::DataSync)
MESHWRIGHT_PASS_OPTION(::meshwright::ResidualChoice)
MESHWRIGHT_PASS_OPTION(::meshwright::LayerNumbers)
MESHWRIGHT_PASS_OPTION(::meshwright::MemorySpace)
MESHWRIGHT_PASS_OPTION(::meshwright::LossParts)
MESHWRIGHT_PASS_OPTION(::meshwright::NamePatterns)
MESHWRIGHT_PASS_OPTION(::meshwright::ParameterGroups)
MESHWRIGHT_PASS_OPTION(::meshwright::dist::CollectiveAlgorithm)

#endif // MESHWRIGHT_OPTIONVALUES_H
