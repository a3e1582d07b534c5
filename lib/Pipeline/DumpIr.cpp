//===- DumpIr.cpp - the IR after each pass ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DumpPage.h"
#include "ModuleText.h"
#include "meshwright/OutputFolder.h"
#include "meshwright/Pipeline.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;

namespace meshwright {

/// 7 as "07": files sort in the order of the passes.
static std::string numbered(unsigned n) { return (n < 10 ? "0" : "") + std::to_string(n); }

/// Printing a program looks at the whole module, which other threads are changing: a copy is alone.
/// With the name of a pass, the text says that it was dumped after it.
static std::string textOf(Operation *op, StringRef after = "") {
  OwningOpRef<Operation *> copy = op->getParentOp() ? op->clone() : nullptr;
  Operation *printed = copy ? *copy : op;
  if (!after.empty())
    printed->setAttr(dumpedAfterAttr, StringAttr::get(op->getContext(), after));
  std::string text;
  llvm::raw_string_ostream os(text);
  printModule(printed, os, /*elideLargeConstants=*/true);
  printed->removeAttr(dumpedAfterAttr);
  return text;
}

namespace {
class Dump : public PassInstrumentation {
public:
  Dump(StringRef directory, ModuleOp module) : directory(directory) {
    last[module] = textOf(module);
  }

  /// Writes what passes begin with.
  Error writeImport(ModuleOp module) {
    changed["00-import"] = true;
    if (Error error = write("00-import.mlir", last[module]))
      return error;
    if (Error error = write("index.html", dumpPageHead()))
      return error;
    return writeIndex();
  }

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isDumped(pass, op) && !last.count(op))
      last[op] = textOf(op);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (!isDumped(pass, op)) {
      last.erase(op);
      return;
    }
    std::string name = nameAfter(pass, op), text = textOf(op);
    bool isChanged = last[op] != text;
    std::string section = isChanged ? dumpPageSection(name, last[op], text) : dumpPageIdle(name);
    changed[name] = isChanged;
    // A module changes with its programs, and may replace them.
    if (op->getParentOp())
      last.erase(op->getParentOp());
    else
      last.clear();
    last[op] = std::move(text);
    Error error =
        isChanged ? write(name + ".mlir", textOf(op, pass->getArgument())) : Error::success();
    if (!error)
      error = write("index.html", section, llvm::sys::fs::OF_Append);
    if (!error)
      error = writeIndex();
    std::string message = toString(std::move(error));
    // The next would fail as the first does.
    if (!message.empty() && !failed)
      op->emitError(message);
    failed |= !message.empty();
  }

private:
  /// Passes of no floor only mark stages, or run other passes.
  static bool isDumped(Pass *pass, Operation *op) {
    StringRef name = pass->getArgument();
    return !name.empty() && !name.starts_with("meshwright-") && isa<ModuleOp>(op);
  }

  /// Programs count for themselves from where the module was, and it goes on after all.
  std::string nameAfter(Pass *pass, Operation *op) {
    std::string name = ("-" + pass->getArgument()).str();
    if (op->getParentOp())
      return numbered(count + ofProgram[op]++) + name + "." +
             cast<ModuleOp>(op).getSymName().value_or("").str();
    unsigned most = 0;
    for (auto &[nested, passes] : ofProgram)
      most = std::max(most, passes);
    ofProgram.clear();
    count += most;
    return numbered(count++) + name;
  }

  std::string pathOf(StringRef name) {
    llvm::SmallString<256> path(directory);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  Error write(StringRef name, StringRef text,
              llvm::sys::fs::OpenFlags flags = llvm::sys::fs::OF_None) {
    std::error_code error;
    llvm::raw_fd_ostream os(pathOf(name), error, flags);
    if (!error)
      os << text;
    os.flush();
    if (!error)
      error = os.error();
    os.clear_error();
    return error ? createStringError("cannot write '" + pathOf(name) + "': " + error.message())
                 : Error::success();
  }

  /// Lists the passes so far, those without a file too.
  Error writeIndex() {
    std::string text;
    for (auto &[name, isChanged] : changed)
      text += name + (isChanged ? ".mlir" : " changed nothing") + "\n";
    return write("passes.txt", text);
  }

  std::string directory;
  unsigned count = 1;
  bool failed = false; ///< to write a file
  llvm::DenseMap<Operation *, unsigned> ofProgram;
  llvm::DenseMap<Operation *, std::string> last; ///< what each module is, where that is known
  std::map<std::string, bool> changed;           ///< what ran, by its number
};
} // namespace

/// Whether a dump may have a file of this name: "00-import.mlir", "30-exec-order.stage1.mlir".
static bool isDumpName(StringRef name) {
  if (!name.consume_back(".mlir"))
    return false;
  auto [number, pass] = name.split('-');
  pass = pass.split('.').first;
  return number.size() >= 2 && llvm::all_of(number, llvm::isDigit) &&
         (pass == "import" || PassInfo::lookup(pass));
}

Error dumpIrTo(PassManager &manager, StringRef directory, ModuleOp module) {
  if (std::error_code error = llvm::sys::fs::create_directories(directory))
    return createStringError("cannot make directory '" + directory + "': " + error.message());
  if (Error error = removeFiles(directory, isDumpName))
    return error;
  auto dump = std::make_unique<Dump>(directory, module);
  if (Error error = dump->writeImport(module))
    return error;
  manager.addInstrumentation(std::move(dump));
  return Error::success();
}

} // namespace meshwright
