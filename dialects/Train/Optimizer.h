//===- Optimizer.h - what an optimizer is -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An optimizer is a row: its states, its hyperparameters and the formula of its update.
// Everything else reads the row: the pass that builds the update, kernels, the interpreter,
// plans and with them executables, flags and checkpoints. Each row is a file of
// Optimizers/ and a line of Optimizers.def, or comes from a plugin.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZER_H
#define MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZER_H

#include "Train/Expr.h"
#include "meshwright/OptionValues.h"
#include "meshwright/runtime/PlanSchema.h"

#include <optional>
#include <string>

namespace meshwright::train {

/// A tensor beside each parameter, of its shape, which begins as zeros. Files call it by the
/// parameter's name, a dot and `name`.
struct OptimizerState {
  llvm::StringLiteral name;
  /// Whether it is an average of gradients: with all hyperparameters 0 the last gradient.
  bool isAverageOfGradients = false;
  /// Whether gradients are taken at the sum of the parameter and this state instead of at the parameter.
  bool isGradientOffset = false;
  /// Whether it is nowhere below 0.
  bool isPositive = false;
  /// Of an average m of gradients g along which steps go, and which becomes b m + (1 - b) g: the hyperparameter b.
  llvm::StringLiteral decay = "";
};

/// The name of the state that holds the largest magnitude of each block of `state`.
std::string amaxOf(llvm::StringRef state);

/// What a mean square has one element for: an element of a vector, a row of a matrix or a column.
enum class MeanOf { element, row, column };

/// An average of mean squares from which `train-build-optimizer` computes directions: a tensor beside a
/// parameter that begins as zeros, in f32. Those of rows and columns are matrices', and of one element in the
/// dimensions that they are means over; those of elements belong to other parameters.
struct MeanSquare {
  llvm::StringLiteral name;
  MeanOf of;
};

/// The largest f32 below 1.
inline constexpr double belowOne = 1.0 - 0x1p-24;

/// A number that an executable is given when it runs: the step's input `name`, the flag of the
/// same name with dashes. It is at least 0.
struct Hyperparameter {
  llvm::StringLiteral name;
  double initial;
  std::optional<double> most; ///< nothing: any number
  llvm::StringLiteral help;
  /// The state whose decay it is, if a step may move that by its (1 - decay)-th part only. Where
  /// the state is stored in bf16, executables refuse decays with which it would not move.
  llvm::StringLiteral decayOf = "";

  /// One that can only be 0 is no input. Its flag says what the optimizer does not do.
  bool isInput() const { return most != 0.0; }
};

/// The step's input `name` in the t-th update: 1 - of^t, by which an average that began at zero is
/// divided, or with `isPower` t^-of, the weight of the t-th value in an average that needs no correction.
struct BiasCorrection {
  llvm::StringLiteral name, of;
  bool isPower = false;
};

/// What the direction of a step is where it is computed from whole matrices, before the update.
enum class Direction {
  none,           ///< the update computes it, element by element
  orthogonalized, ///< the orthogonalized average of gradients (Muon)
  normalized,     ///< ... with rows of similar size (NorMuon)
  factored,       ///< the gradient over the root of its rows' and columns' mean squares (Adafactor)
  scaled          ///< ... times the root mean square of the parameter
};

struct Optimizer;

/// What a formula computes with: values of one element type, scalars of rank 0 and others of the
/// parameter's shape.
class UpdateInputs {
public:
  UpdateInputs(UpdateOp op, mlir::OpBuilder &builder, mlir::ValueRange operands);

  formula::Expr parameter, gradient, clip, lr;
  /// The direction of the step, where the row has one.
  std::optional<formula::Expr> direction;
  /// Whether weights of this parameter decay: vectors' (norms, biases) do not.
  bool decays;

  formula::Expr clipped() const { return gradient * clip; }
  formula::Expr state(llvm::StringRef name) const;
  /// A hyperparameter or a bias correction.
  formula::Expr scalar(llvm::StringRef name) const;
  /// The weight decay of a parameter that decays.
  formula::Expr decay() const;

private:
  UpdateInputs(UpdateOp op, const Optimizer &optimizer, mlir::OpBuilder &builder,
               mlir::ValueRange operands);

  const Optimizer &optimizer;
  double decayFactor;
  mlir::ValueRange states, scalars;
};

/// How many times the base model's fan-in and fan-out a parameter has, in muP.
struct WidthMultipliers {
  double fanIn = 1, fanOut = 1;
};

/// What an update of one parameter multiplies the learning rate, the weight decay and the input `eps` by.
struct UpdateFactors {
  double rate = 1, decay = 1, eps = 1;
};

/// The parameter after an update, and its states in the order of the row.
struct Updated {
  formula::Expr parameter;
  llvm::SmallVector<formula::Expr, 2> states;
};

struct Optimizer {
  llvm::StringLiteral name, summary;
  llvm::ArrayRef<OptimizerState> states;
  llvm::ArrayRef<Hyperparameter> hyperparameters;
  llvm::ArrayRef<BiasCorrection> corrections;
  /// Builds the update of each element. Zeros must make zeros, as padding needs.
  Updated (*update)(const UpdateInputs &);
  /// How steps of a wider parameter differ in muP (Optimizers/MaximalUpdate.h); null: no rule is published.
  UpdateFactors (*scaledByWidth)(WidthMultipliers) = nullptr;
  /// `train-build-optimizer` computes it, with its averages.
  Direction direction = Direction::none;
  llvm::ArrayRef<MeanSquare> means = {};
  /// The row of parameters that are no hidden matrices, if this one is of these alone.
  const Optimizer *elsewhere = nullptr;
  /// Whether states of large parameters are stored as codes of 8 bits in blocks, with `<state>_amax` beside each.
  bool quantizesStates = false;

  /// The inputs that the formula reads beside the learning rate, in the order of operands.
  llvm::SmallVector<llvm::StringRef> scalars() const;
  /// Whether an update has the direction of its step as an operand.
  bool hasDirection() const { return direction != Direction::none; }
  bool orthogonalizes() const {
    return direction == Direction::orthogonalized || direction == Direction::normalized;
  }
  /// Whether any parameter has such a state.
  bool keeps(llvm::StringRef state) const;
  /// The state that is added to parameters where gradients are taken, or null.
  const OptimizerState *gradientOffset() const;
  /// Whether the states that updates compute may be stored in bf16.
  bool hasNarrowStates() const { return !states.empty() && !gradientOffset() && !quantizesStates; }
};

/// All of them; the first is the default.
llvm::ArrayRef<const Optimizer *> optimizers();
/// Adds a row to them, as a plugin does before flags are read. `row` outlives the process's compiles; its
/// name must be its own.
void registerOptimizer(const Optimizer &row);
llvm::SmallVector<llvm::StringRef> optimizerNames();
/// The row called `name`, or null.
const Optimizer *findOptimizer(llvm::StringRef name);
/// Whether an optimizer gives a step an input of that name.
bool isOptimizerInput(llvm::StringRef name);

/// The values of the update `op` of `operands`, which may have other types than its own.
llvm::SmallVector<mlir::Value> buildUpdate(UpdateOp op, mlir::OpBuilder &builder,
                                           mlir::ValueRange operands);

/// Writes into a plan what executables read of the row.
void addToPlan(const Optimizer &optimizer, plan::Header &plan);

/// Whether a program keeps averages of parameters beside them, whatever updates these.
bool keepsAverages(mlir::ModuleOp module);
/// Writes what executables read of them.
void addAveragesToPlan(plan::Header &plan);

// As the value of an option.
llvm::Error parseOption(llvm::StringRef text, const Optimizer *&optimizer);
std::string optionText(const Optimizer *optimizer);

} // namespace meshwright::train

MESHWRIGHT_PASS_OPTION(const ::meshwright::train::Optimizer *)

#endif // MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZER_H
