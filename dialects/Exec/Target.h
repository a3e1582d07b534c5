//===- Target.h - what depends on the device a program is compiled for ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Passes and reports ask the target of a module; none of them knows a target by name.
// A target is one folder under lib/Codegen, which implements this interface, and one
// under runtime. A module says its target by the attribute `exec.target`:
//
//   module attributes {exec.target = #exec.target<"name", {parameter = 1 : i64}>}
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_TARGET_H
#define MESHWRIGHT_EXEC_TARGET_H

#include "meshwright/runtime/ABI.h"
#include "meshwright/runtime/PlanSchema.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <map>

namespace meshwright {
struct CodegenOptions;
namespace codegen {
struct Communication;
}
} // namespace meshwright

namespace meshwright::exec {

/// A flag of `meshwright compile` that one target reads.
struct TargetFlag {
  const char *name;  ///< without dashes; also the key in a recipe
  const char *value; ///< what stands for the value in help
  const char *help;
  const char *initial;                   ///< the value where the flag is not given
  const char *parameter;                 ///< of `#exec.target`, which the flag sets
  bool planned = true;                   ///< whether it decides what planned IR holds
  std::vector<std::string> choices = {}; ///< empty: any value
};

/// The values of a target's flags that were given, by name.
using FlagValues = std::map<std::string, std::string>;

/// Limits of how kernels are divided into chunks.
struct ScheduleLimits {
  int64_t maxChunks;
  /// Least work of a chunk, in elements times their cost over 8.
  int64_t chunkWork;
  /// Longest row, in elements, that is worth reading twice for its greatest element and
  /// the sum of exponentials less that: a cache or registers hold it.
  int64_t heldRow;
};

/// A matrix product as far as libraries tell products apart: C[m, n] = A[m, k] B[k, n], of
/// row-major matrices as stored.
struct ProductShape {
  bool transA = false, transB = false;
  int64_t m = 1, n = 1, k = 1;
  int64_t ldc = 1; ///< elements between rows of C
  int64_t batch = 1;
  bool mixed = false; ///< whether a matrix is narrower than f32
  mlir::Type result = {};  ///< element type of C
};

/// The rows of experts of a product: blocks of equally many experts and rows each.
struct GroupShape {
  int64_t blocks = 1;
  int64_t rows = 1;    ///< of a block
  int64_t experts = 1; ///< of all blocks
};

/// The order of rows of experts, of which a token chooses `k`.
struct RouteShape {
  int64_t sequences = 1;
  int64_t length = 1; ///< tokens of a sequence
  int64_t experts = 1;
  int64_t k = 1;
  int64_t blocks = 1;
  int64_t slots = 1;    ///< of a block
  int64_t capacity = 0; ///< most tokens of a sequence that an expert takes; 0: all
};

/// An operation of a library on a product's sums before it writes them, or beside that.
struct Epilogue {
  enum Kind {
    Addend,   ///< adds a matrix
    Bias,     ///< adds a row
    Gelu,     ///< takes gelu of the sums, and may keep them
    GeluGrad, ///< multiplies by the derivative of gelu
    BiasGrad  ///< sums factor `factor` over k
  } kind;
  bool tanh = true;    ///< Gelu, GeluGrad: in the tanh form
  unsigned factor = 0; ///< BiasGrad: 0 is A, 1 is B
};

/// The files that an object is linked with.
struct RuntimeFiles {
  const char *archive;  ///< static library, in the runtime's folder
  const char *linkLine; ///< file of further arguments, one a line, beside the archive
  const char *hint;     ///< what else must be there for the runtime to be built; may be empty
};

class Target {
public:
  using Parameters = mlir::DictionaryAttr; ///< those of `#exec.target`; absent ones are default
  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

  virtual ~Target() = default;
  virtual llvm::StringRef getName() const = 0;
  virtual bool isDefault() const { return false; }
  virtual void registerDialects(mlir::DialectRegistry &registry) const {}

  //===--- flags and parameters ---------------------------------------------===//

  virtual llvm::ArrayRef<TargetFlag> getFlags() const { return {}; }
  /// The parameters that given flags ask for. Errors name the flag, its value and what works.
  llvm::Expected<Parameters> parse(const FlagValues &given, mlir::MLIRContext &context) const;
  virtual mlir::LogicalResult verify(EmitError emitError, Parameters parameters) const;

  //===--- schedules --------------------------------------------------------===//

  virtual ScheduleLimits getScheduleLimits() const { return {64, 16384, INT64_MAX}; }
  /// Bytes that rows of matrices should begin at multiples of; dist-pad sees to it.
  virtual int64_t getRowAlignment() const { return 1; }
  /// Whether --overlap auto is on.
  virtual bool overlapsByDefault() const { return false; }
  /// Inputs and results that one launch has at most; 0: any number, and no launches are merged.
  virtual unsigned getMostLaunchOperands() const { return 0; }

  //===--- libraries --------------------------------------------------------===//

  /// Whether the library for products can do `epilogue` with `product`.
  virtual bool canFuse(const Epilogue &epilogue, const ProductShape &product) const {
    return false;
  }
  /// Whether it should, where it can.
  virtual bool shouldFuse(Epilogue::Kind kind, Parameters parameters) const { return false; }
  /// Chooses what makes the call of attention `op` of the tensor form: sets the attribute
  /// `exec.library`, which only the target reads, or says why not in `exec.reason`.
  virtual mlir::LogicalResult chooseLibrary(mlir::Operation *op, Parameters parameters) const {
    return mlir::success();
  }
  /// Checks such a choice.
  virtual mlir::LogicalResult verifyLibrary(EmitError emitError, mlir::Attribute library) const;
  /// Scratch bytes of a product, and of attention or its gradient under a choice of library
  /// (or null).
  virtual int64_t getProductWorkspace(const ProductShape &product) const { return 0; }
  /// Whether attention may be of a part of the keys, and merged with that of others.
  virtual bool hasPartialAttention() const { return false; }
  /// Scratch bytes of the order of rows of experts, and of a product with the matrix of each row's
  /// expert or its gradient. `product` is what it would be if all rows were of one expert.
  virtual int64_t getRouteWorkspace(const RouteShape &shape) const { return 0; }
  virtual int64_t getGroupedWorkspace(const ProductShape &product, const GroupShape &groups,
                                      bool gradient) const {
    return getProductWorkspace(product);
  }
  virtual int64_t getAttentionWorkspace(const MwAttention &shape, bool backward,
                                        mlir::Attribute library) const {
    return 0;
  }
  /// Bytes that such a call writes to its scratch memory, and then reads there, at least.
  virtual int64_t getAttentionScratchTraffic(const MwAttention &shape, bool backward,
                                             mlir::Attribute library, Parameters) const {
    return 0;
  }

  //===--- costs ------------------------------------------------------------===//

  /// The device that programs with these parameters are for where nothing else says it: a name
  /// in the table of `lib/Cost/CostTable.cpp`. Passes ask that table what things cost.
  virtual llvm::StringRef getDefaultDevice(Parameters parameters) const = 0;

  //===--- the plan ---------------------------------------------------------===//

  /// The allowances of a rank that runs `program`.
  virtual std::vector<plan::Allowance> getAllowances(mlir::ModuleOp program,
                                                     const codegen::Communication &) const {
    return {};
  }
  /// Adds to the plan of a compiled module what only this target's runtime reads.
  virtual void addToPlan(mlir::ModuleOp module, plan::Plan &plan) const {}

  //===--- the way out ------------------------------------------------------===//

  /// The phases at which programs leave as this target's text, the last one where --emit does
  /// not say; none for targets of executables.
  virtual llvm::ArrayRef<llvm::StringLiteral> getExits() const { return {}; }
  /// The module as functions of the LLVM dialect, with the plan and whatever else the
  /// runtime looks for. What the user should know of it goes to `log`.
  virtual mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  lower(mlir::ModuleOp module, const CodegenOptions &options, Parameters parameters,
        llvm::raw_ostream &log) const;
  /// The processor, as LLVM names it, that lowered functions are compiled for; empty: this
  /// machine's.
  virtual std::string getHostProcessor(Parameters parameters) const { return ""; }
  virtual RuntimeFiles getRuntimeFiles() const { return {}; }
  /// Whether executables have a decoder, which generates tokens.
  virtual bool generates() const { return false; }
  /// The values of --emit that this target adds for a module at phase exec.
  virtual llvm::ArrayRef<llvm::StringLiteral> getEmissions() const { return {}; }
  /// The text of an exit or an emission.
  virtual mlir::FailureOr<std::string> emit(llvm::StringRef emission, mlir::ModuleOp module,
                                            Parameters parameters) const;

protected:
  /// The parameters that `values`, one of each flag, ask for.
  virtual llvm::Expected<Parameters> parseFlags(const FlagValues &values,
                                                mlir::MLIRContext &context) const;
};

/// Makes a target known for the rest of the process.
void registerTarget(std::unique_ptr<Target> target);

/// The known targets in the order in which they were registered.
llvm::ArrayRef<std::unique_ptr<Target>> getTargets();
/// The target called `name`, or null.
const Target *findTarget(llvm::StringRef name);
/// The target of modules without `exec.target`, and of `compile` without --target.
const Target &getDefaultTarget();
/// All names in one text, for messages.
std::string targetNames();

} // namespace meshwright::exec

#endif // MESHWRIGHT_EXEC_TARGET_H
