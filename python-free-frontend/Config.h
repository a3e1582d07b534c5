//===- Config.h - a config.json with every key accounted for -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_CONFIG_H
#define MESHWRIGHT_FRONTEND_CONFIG_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <map>
#include <memory>
#include <optional>

namespace meshwright::frontend {

/// Sizes are indices of 32-bit token and position numbers.
inline constexpr int64_t largestSize = std::numeric_limits<int32_t>::max();

/// A key that is understood when it has one of the values `allowed` (JSON
/// texts), and refused otherwise.
struct FixedKey {
  llvm::StringRef key;
  llvm::SmallVector<llvm::StringRef, 2> allowed;
  llvm::StringRef reason; ///< what another value would ask for
};

/// Reads one JSON object. Each getter marks its key as used; `finish` makes an
/// error of every key that no table knows. A key with dots is one of an object inside:
/// "attn_config.clip_qkv". Errors are diagnostics at the key's
/// line and column; after one, getters return their default and `failed` is
/// true, so that all of a file's errors are seen at once.
class Config {
public:
  static mlir::FailureOr<Config> read(llvm::StringRef path, mlir::MLIRContext *context);

  /// An integer from 1 to `most`.
  int64_t size(llvm::StringRef key, int64_t otherwise, int64_t most = largestSize);
  /// ... or nothing where the key is null.
  std::optional<int64_t> optionalSize(llvm::StringRef key,
                                      std::optional<int64_t> otherwise = std::nullopt);
  /// An integer of at least 0.
  int64_t count(llvm::StringRef key, int64_t otherwise);
  /// An integer of at least -1.
  int64_t index(llvm::StringRef key, int64_t otherwise);
  /// A token of the vocabulary, counted from its end if negative; -1 where the key
  /// is null, or absent without `otherwise`.
  int64_t token(llvm::StringRef key, int64_t vocabulary,
                std::optional<int64_t> otherwise = std::nullopt);
  /// The integers from 0 of an array; nothing where the key is absent or null.
  std::optional<std::vector<int64_t>> counts(llvm::StringRef key);
  /// ... or of a text that has them with commas between.
  std::optional<std::vector<int64_t>> listedCounts(llvm::StringRef key);
  /// The numbers above 0 of an array, of which there must be `size`.
  std::vector<double> positives(llvm::StringRef key, size_t size);
  /// Two numbers of at least 0 that do not decrease, of which the second may be Infinity, also as
  /// transformers 5 writes it, {"__float__": "Infinity"}; `otherwise` where the key is absent or null.
  std::pair<double, double> range(llvm::StringRef key, std::pair<double, double> otherwise);
  /// A number above 0, or nothing where the key is null.
  std::optional<double> optionalPositive(llvm::StringRef key, std::optional<double> otherwise);
  /// A number above 0.
  double positive(llvm::StringRef key, double otherwise);
  /// A number in [0, 1).
  double probability(llvm::StringRef key, double otherwise);
  bool flag(llvm::StringRef key, bool otherwise);
  std::string text(llvm::StringRef key, llvm::StringRef otherwise);
  /// The value as JSON; null where the key is absent.
  const llvm::json::Value *json(llvm::StringRef key) { return find(key); }
  /// The strings of an array; nothing where the key is absent or null.
  std::optional<std::vector<std::string>> texts(llvm::StringRef key);
  /// A nested object; nothing where the key is absent or null.
  std::optional<Config> object(llvm::StringRef key);

  /// Has `key` say `value`, though it is not there.
  void assume(llvm::StringRef key, bool value);

  /// Says that `key` says nothing beside the others that are there.
  void ignore(llvm::StringRef key) { used.insert(key); }

  /// Says that `alias` is another spelling of `key`.
  void alias(llvm::StringRef key, llvm::StringRef alias);

  /// Whether the key is there, with a value other than null.
  bool has(llvm::StringRef key) const;

  /// Reports keys that were neither used nor named here.
  void finish(llvm::StringRef family, llvm::ArrayRef<llvm::StringRef> ignored,
              llvm::ArrayRef<FixedKey> fixed);

  /// An error about `key` (or the whole file), at its position.
  mlir::InFlightDiagnostic error(llvm::StringRef key);
  mlir::Location location(llvm::StringRef key) const;
  bool failed() const { return state->failed; }
  /// The whole file.
  llvm::StringRef contents() const { return state->text; }

private:
  struct State {
    std::string path, text;
    mlir::MLIRContext *context;
    llvm::json::Value root = nullptr;
    llvm::StringMap<std::pair<unsigned, unsigned>> positions; ///< by dotted key: line, column
    llvm::StringMap<unsigned> repeated;                    ///< keys written twice
    llvm::StringMap<std::string> nonFinite; ///< by dotted key: Infinity, -Infinity or NaN in it
    bool failed = false;
  };

  Config(std::shared_ptr<State> state, const llvm::json::Object *members, std::string prefix)
      : state(std::move(state)), members(members), prefix(std::move(prefix)) {}

  /// The value of `key`, of which dots lead into objects; null if absent.
  const llvm::json::Value *lookup(llvm::StringRef key) const;
  /// The value of `key` or of its alias, marked as used; null if absent.
  const llvm::json::Value *find(llvm::StringRef key);
  /// Infinity, -Infinity or NaN if the value of `key` is that or has it in a list; else empty.
  llvm::StringRef nonFinite(llvm::StringRef key) const;
  /// Reports that `key` is not what is `wanted`.
  void mismatch(llvm::StringRef key, const llvm::json::Value &value, llvm::StringRef wanted);
  int64_t integer(llvm::StringRef key, int64_t otherwise, int64_t least, int64_t most);

  std::shared_ptr<State> state;
  const llvm::json::Object *members;
  std::string prefix;
  std::map<std::string, llvm::json::Value> assumed; ///< by key
  llvm::StringSet<> used, wrong;
  llvm::StringMap<std::string> aliases;
};

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_CONFIG_H
