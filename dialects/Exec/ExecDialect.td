//===- ExecDialect.td - floor 3 ---------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_DIALECT
#define MESHWRIGHT_EXEC_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::meshwright::exec";
  let summary = "Floor 3: how it is computed, in memory";
  let description = [{
    One device's program: buffers at fixed offsets of one arena, generated kernels,
    library calls, loops. The dialect has two forms. In the tensor form kernels are
    functions on tensors that `exec.launch` calls, and loops carry tensors.
    `exec-bufferize` turns it into the memory form, in which every operand is a memref
    over the arena and `exec.program`s hold no tensor.

    Attributes of kernel functions (`func.func private` with `exec.kernel`):

    | attribute | meaning |
    |---|---|
    | `exec.kernel` | unit: this function is a kernel |
    | `exec.template`, `exec.iterations`, `exec.chunks` | one entry a loop nest: its template, its parallel iterations, and the number of chunks into which they are divided |
    | `exec.workspace` | i64: bytes a launch needs beside its operands, 0 if none |
    | `exec.inplace` | `[[in, out], ..]`: result `out` may be the same memory as argument `in` |

    Attributes of a module whose buffers have offsets, and of a private program, whose
    arena is its caller's workspace: `exec.arena_bytes`, the size of the arena;
    `exec.live_bytes`, the largest sum of bytes that are live at once, of stacks the slots that a
    loop has filled or not yet emptied, including those of called programs at that moment; `exec.memory`, bytes by category at that moment.
    With memory of an offload space (`MemorySpaces.def`), such as the host's of type
    `memref<.., "host">`, also `exec.host_bytes`, the size of the host's arena, and
    `exec.host_memory`, bytes by category when most of it is live.

    A collective of the memory form, or a copy between the two arenas, is asynchronous if it
    has an async token, the i64 `exec.async_token`; see `exec.wait`.

    A launch in the tensor form has `exec.gradients`, the numbers of the inputs from which an
    update computes its gradient, and `exec.moves`, the numbers of the results that are its only
    input in another layout or type. `exec-form-kernels` writes both, and `exec-bufferize` reads
    them to find the categories of buffers.

    A finished module has `exec.groups`, the groups of ranks that communicate: a list of their
    mesh axes, `["data", "tensor"]`, and the channel behind them if that is not 0. Each collective has
    `exec.collective`, an i64: its row in the plan, counted over all programs. Code, plan and traces
    name groups and collectives by these numbers (`exec-number-collectives`).

    A `func.call` in the tensor form has `exec.inplace_aliases` once its callee is in the memory
    form: for each result the operand that it is an in-place alias of, or -1.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::meshwright::train::TrainDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

def Exec_Category : I32EnumAttr<"Category", "what a buffer is for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Optimizer", 1, "optimizer">,
    I32EnumAttrCase<"Gradient", 2, "gradient">, I32EnumAttrCase<"Activation", 3, "activation">,
    I32EnumAttrCase<"Input", 4, "input">, I32EnumAttrCase<"Output", 5, "output">,
    I32EnumAttrCase<"Workspace", 6, "workspace">, I32EnumAttrCase<"Temporary", 7, "temporary">]> {
  let cppNamespace = "::meshwright::exec";
  let genSpecializedAttr = 0;
}
def Exec_CategoryAttr : EnumAttr<Exec_Dialect, Exec_Category, "category"> {
  let summary = "The category of a buffer";
  let description = [{
    Variables are `parameter` or `optimizer`; the values that update them, and the sums
    and shards of these, are `gradient`; values that layers save for their backward, or
    that one called function computes for another, are `activation`; `workspace` is scratch memory
    of one op; everything else is `temporary`.
  }];
  let assemblyFormat = "`` $value"; // ops put the space before it
}

def Exec_TargetAttr : AttrDef<Exec_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "The target of a module";
  let description = [{
    The name of a registered target, and its parameters in parsed form: architectures, a
    processor, choices of libraries. Parameters that are absent have their defaults. A
    module carries it as `exec.target` (`exec-assign-target`); a module without it is for
    the default target.

    Example: `#exec.target<"cpu", {processor = "znver4"}>`.
  }];
  let parameters = (ins StringRefParameter<"of a registered target">:$name,
                        OptionalParameter<"::mlir::DictionaryAttr">:$parameters);
  let assemblyFormat = "`<` $name (`,` $parameters^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The object that knows this target.
    const ::meshwright::exec::Target &getTarget() const;
  }];
}

#endif // MESHWRIGHT_EXEC_DIALECT
