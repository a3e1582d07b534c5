//===- Graph.h - builds a model's floor-1 module -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_GRAPH_H
#define MESHWRIGHT_FRONTEND_GRAPH_H

#include "Family.h"
#include "Train/Train.h"
#include "meshwright/Frontend.h"

#include "mlir/IR/Builders.h"

namespace meshwright::frontend {

using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;
using mlir::Value;

/// Where rows of a weight lie in a file's tensor, see train.storage.
struct FileRows {
  int64_t offset = 0, full = 0, period = 0;
  llvm::SmallVector<int64_t> runs = {};
};

/// Where a variable's numbers come from: its name and offset in a safetensors
/// file, and its start when there is none.
struct Weight {
  StringRef name;                   ///< within its function's prefix
  llvm::SmallVector<int64_t> shape; ///< of one layer
  double std = 0;                   ///< of the initial normal distribution; 0: `value` everywhere
  double value = 0;
  std::string tensor = {};     ///< in the file; empty: prefix + name
  bool transpose = false;      ///< the file holds [in, out]
  FileRows rows = {};          ///< where its rows lie; a bias has elements for rows
  int64_t rowDim = 0;          ///< which dimension rows are counted along
  int64_t experts = 0; ///< above 0: the first dimension counts experts, of which a token uses so many
  bool full = false;           ///< whether it stays f32 in mixed precision
  bool frozen = false;         ///< whether steps leave it as it is: a buffer of transformers
  bool optional = false;       ///< whether a file may lack it: then it is zeros
  double balanceRate = 0; ///< above 0: a step changes it by so much, as counts of tokens say
};

/// Counts of tokens that a run of layers reports, [layers, experts]: of which router, and the bias
/// that they balance, if any.
struct TokenCounts {
  Value value;
  std::string router, bias;
};

/// While it lives, what `builder` makes stays f32 in mixed precision.
class FullPrecision : mlir::OpBuilder::Listener {
public:
  explicit FullPrecision(mlir::OpBuilder &builder) : builder(builder) { builder.setListener(this); }
  ~FullPrecision() override { end(); }
  FullPrecision(const FullPrecision &) = delete;
  /// From here on not any more.
  void end() { builder.setListener(nullptr); }

private:
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override;
  mlir::OpBuilder &builder;
};

/// What attention takes besides queries, keys and values, see train.attention; null where it does not.
struct ScoreTerms {
  Value slopes = {}, sinks = {}, distances = {}, lengths = {};
};

/// How many layers share one function, and which.
struct LayerRun {
  int64_t first = 0, count = 1;
};

/// Builds the ops of one function, each located by the name of the model part it
/// belongs to; values are printed by these names. Elements are f32.
class FunctionGraph {
public:
  mlir::OpBuilder builder;
  mlir::func::FuncOp function;

  /// Sets the part that the following ops belong to.
  void part(StringRef name);
  mlir::Location where() const { return location; }

  Value linear(Value x, Value weight, Value bias = {});
  Value add(Value a, Value b);
  Value mul(Value a, Value b);
  /// x itself where `factor` is 1.
  Value scale(Value x, double factor);
  Value fill(double value, ArrayRef<int64_t> shape);
  /// Without a weight it is 1, without a bias that is 0. With `plusOne` the weight is 1 + `weight`.
  Value norm(NormKind kind, Value x, Value weight, Value bias, double eps, bool plusOne);
  /// Rows of `table`; the row `padding` (-1: none) gets no gradient from here.
  Value embedding(Value table, Value ids, int64_t padding = -1);
  /// The first rows of x.
  Value firstRows(Value x, int64_t rows);
  /// `rows` rows of dimension `dim`, from row `from` on.
  Value slice(Value x, int64_t dim, int64_t from, int64_t rows);
  /// x, whose dimension 1 counts positions, before or behind ops that need a sequence whole: where a mesh may divide it
  /// otherwise. x itself in a program that reads a few tokens at a time, on one device.
  Value redistribute(Value x);
  /// The sum of all elements, a scalar.
  Value sum(Value x);
  /// The first columns of a table, or of tables.
  Value firstColumns(Value x, int64_t columns);
  /// Rows of a table that has one for each position, for each token. Row `first` is that of position 0.
  Value positionRows(Value table, int64_t sequence, int64_t first = 0);
  /// x from index `from` of dimension `dim` on, among zeros.
  Value pad(Value x, int64_t dim, int64_t from, int64_t rows);
  /// What attention adds to scores by distance, of which `table` has a row for each bucket.
  Value distances(Value table, int64_t sequence, int64_t maxDistance, bool causal);
  /// x repeated along `dims`, dimensions of `shape` that it does not have.
  Value broadcast(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims);
  Value reshape(Value x, ArrayRef<int64_t> shape);
  Value rope(Value x, Value cos, Value sin);
  /// The activation that transformers calls `name`; null if there is none.
  Value activation(StringRef name, Value x);
  /// What a gated MLP makes of its first two products.
  Value gated(StringRef activation, Value gate, Value up, const GateLimits &limits);
  /// x between -limit and limit; x itself where `limit` is 0.
  Value clamp(Value x, double limit);
  /// cap tanh(x / cap); x itself where `cap` is 0.
  Value softCap(Value x, double cap);
  /// `window` 0 hides nothing, `cap` 0 caps no scores. `dropout` acts on probabilities.
  /// `spec`: without the stream of its dropout.
  Value attention(Value q, Value k, Value v, const ScoreTerms &terms, train::AttentionSpec spec);
  /// x itself where `rate` is 0.
  Value dropout(Value x, double rate);

  bool readsSequences = true; ///< at once, not the next few tokens of one
  Value ids, key;  ///< for dropout; null without
  Value positions; ///< of tokens in their documents; null where sequences are one

protected:
  friend class ModelGraph;
  FunctionGraph(mlir::func::FuncOp function, int &streams);
  mlir::Location location;
  int &streams; ///< dropout sites of the module so far
};

/// A layer's function under construction. Arguments: iteration (with dropout), x,
/// the layer's weights, shared values.
class LayerGraph : public FunctionGraph {
public:
  Value input();
  /// The layer's slice of a new stacked variable, or a variable that all layers share.
  Value weight(const Weight &weight);
  /// From here on names of weights have this number behind their first part, as in self_attn.1.q_proj.weight.
  std::optional<int> half = std::nullopt;
  /// A value of @loss that all layers see, there called `name`.
  Value shared(Value outer, StringRef name);
  /// The layer's slice of a value that has one for each layer of the run in its first dimension.
  Value each(Value stack, StringRef name);
  /// The layer's part of the input that says where copies of experts are, [residues + 1, copies].
  Value expertPlacement();
  /// What the layer has kept of the tokens read so far, in a program that reads a few at a time; zeros at the begin.
  Value state(StringRef name, ArrayRef<int64_t> shape);
  /// What it keeps for those that follow, in place of the last `state` without one.
  void keep(Value state);
  /// Puts `value` in place of sum `i`, counted from the last.
  void setLastSum(unsigned i, Value value);
  /// Adds `value` to sum `i` of the sums that go from layer to layer, in place of what it was.
  void addToSum(unsigned i, Value value);
  /// Reports how many of the layer's tokens chose each expert: `tokens` [experts], by the layer's
  /// weight `router`. They balance its weight `bias`, if that is not empty.
  void count(Value tokens, StringRef router, StringRef bias);

private:
  friend class ModelGraph;
  using FunctionGraph::FunctionGraph;
  class ModelGraph *model = nullptr;
  std::string prefix() const;
  LayerRun run;
  bool onlyRun = true;
  llvm::SmallVector<Value> stacks, sharedOuter, sums;
  llvm::SmallVector<TokenCounts, 1> counts;
  llvm::SmallVector<std::string> stateNames;
  llvm::SmallVector<Value> keptStates;
};

/// The module under construction, and its @loss.
class ModelGraph : public FunctionGraph {
public:
  /// `prefix` precedes variable names of layers and `layerTensor` their tensors',
  /// with `{layer}` in it.
  ModelGraph(mlir::MLIRContext &context, StringRef path, const ModelOptions &options,
             bool withDropout, StringRef prefix, StringRef layerTensor);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t rows; ///< sequences of a microbatch
  int64_t sequence; ///< tokens of each
  Value tokens, targets;
  Value targetWeight; ///< of each target that counts; null where the loss is of pairs
  /// What an encoder reads, [rows, sourceSequence()], and how much of each row is no padding; or null.
  Value source, sourceLengths;
  int64_t sourceSequence() const { return options.sourceSequence; }
  /// Whether the program reads the next few tokens of a sequence at a time.
  bool generates() const { return options.tokens > 0; }
  /// Of all microbatches.
  int64_t tokensOfBatch() const { return options.batch * sequence; }
  /// `value`, which is divided by a size of the whole batch, divided by that of the step's batch in its place.
  Value ofStep(Value value);
  /// That a sequence may have, of which the program may read a part at once.
  int64_t positionCount() const { return options.sequence; }

  bool sharesLayers = false; ///< weights of layers are one for all

  /// Layers from here on are another stack's: names of their variables begin with `prefix`, those of
  /// their tensors with `layerTensor`, with `{layer}` in it, and their functions' with `function`.
  void beginStack(StringRef prefix, StringRef layerTensor, StringRef function = "layer");

  /// Gives @loss one more input.
  void addInput(StringRef name, mlir::Type type);
  /// The value of a new variable.
  Value weight(const Weight &weight);
  /// Rows of sines, then cosines, of positions (Vaswani et al. 2017), which are not trained.
  /// `first`: the number of the first position. `toEnd`: the last frequency is 1/10000.
  Value sinusoids(int64_t sequence, int64_t width, int64_t first = 0, bool toEnd = false);
  /// Cosines and sines of the tokens' positions, times `scale`: a table, or one for each sequence.
  std::pair<Value, Value> ropeTable(ArrayRef<double> frequencies, double scale);
  /// Slopes of linear biases, one for each head.
  Value alibiSlopes(int64_t heads, double bias);
  /// x after the layers of `run`, each computed by what `body` builds. `onlyRun`:
  /// all the model's layers are in this run. `sums` go from layer to layer beside x.
  Value layers(Value x, LayerRun run, bool onlyRun, llvm::MutableArrayRef<Value> sums,
               llvm::function_ref<Value(LayerGraph &)> body);
  /// Ends @loss with the mean cross-entropy of `logits` over the targets that count, or the mean loss of
  /// direct preference optimization over pairs, plus `more` if
  /// there is some, and describes the module.
  void finish(Value logits, Value more, StringRef family, StringRef config, int64_t vocabulary,
              int64_t maxPositions, int64_t startToken = 0);

private:
  friend class LayerGraph;
  ModelGraph(mlir::OwningOpRef<mlir::ModuleOp> module, const ModelOptions &options,
             bool withDropout);
  /// The mean loss of direct preference optimization over the pairs of the batch, and the log-probability of
  /// each of its sequences, zeros for those of other microbatches.
  std::pair<Value, Value> preferenceLoss(Value logits);
  /// The input of @loss called `name`; null if there is none.
  Value input(StringRef name);
  Value declare(const Weight &weight, StringRef prefix, StringRef tensorPrefix, int64_t layers);
  /// Cosines and sines of each token's position, or of the first `sequence` positions.
  std::pair<Value, Value> positionAngles(ArrayRef<double> frequencies, int64_t sequence, double scale);

  ModelOptions options;
  std::string prefix, layerTensor, layerFunction;
  llvm::SmallVector<TokenCounts> counts;
  int streamCount = 0;
};

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_GRAPH_H
