//===- ModuleText.cpp - IR as people read and write it ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ModuleText.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace meshwright;

void meshwright::printModule(Operation *op, llvm::raw_ostream &os, bool elideLargeConstants) {
  OpPrintingFlags flags;
  flags.printNameLocAsPrefix();
  if (elideLargeConstants)
    flags.elideLargeElementsAttrs();
  op->print(os, flags);
}

/// "q" of "%q:2" at the beginning of `range`; empty for names that are printers' own, as %3 and %arg1.
static StringRef nameAt(llvm::SMRange range) {
  const char *begin = range.Start.getPointer() + 1, *end = begin;
  while (llvm::isAlnum(*end) || StringRef("$._-").contains(*end))
    ++end;
  StringRef name(begin, end - begin), number = name;
  number.consume_front("arg");
  return llvm::all_of(number, llvm::isDigit) ? StringRef() : name;
}

namespace {
/// Values and their names, by function.
class Names {
public:
  void add(Value value, llvm::SMRange range) {
    StringRef name = nameAt(range);
    if (name.empty())
      return;
    Operation *function = value.getParentRegion()->getParentOfType<FunctionOpInterface>();
    known[function].insert(name);
    found.push_back({value, name, function});
  }

  /// Printers tell two values of one name apart by a number, which is no part of the name.
  void apply() {
    for (auto &[value, name, function] : found) {
      auto [front, number] = name.rsplit('_');
      bool isNumbered = !number.empty() && llvm::all_of(number, llvm::isDigit) &&
                        known[function].contains(front);
      auto called = StringAttr::get(value.getContext(), isNumbered ? front : name);
      value.setLoc(NameLoc::get(called, value.getLoc()));
    }
  }

private:
  struct Named {
    Value value;
    StringRef name;
    Operation *function;
  };
  SmallVector<Named> found;
  llvm::DenseMap<Operation *, llvm::StringSet<>> known;
};
} // namespace

OwningOpRef<ModuleOp> meshwright::readModule(StringRef path, MLIRContext &context) {
  Location start = FileLineColLoc::get(&context, path, 0, 0);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &message);
  if (!file) {
    emitError(start) << message;
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  AsmParserState state;
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state)))
    return {};
  Names names;
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    for (auto [argument, text] :
         llvm::zip(definition.block->getArguments(), definition.arguments))
      names.add(argument, text.loc);
  // Several results have their op's one location.
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
    if (!definition.resultGroups.empty())
      names.add(definition.op->getResult(0), definition.resultGroups.front().definition.loc);
  names.apply();
  return detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, start);
}
