//===- ModuleText.cpp - IR as people read and write it ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ModuleText.h"

#include "Train/Train.h"
#include "meshwright/InputFile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace meshwright;

/// The name of the attribute with the model's configuration, and of the resource with its lines.
static constexpr StringRef configAttr = train::configAttr;

/// Where to break a line that is too long: behind a comma or before a colon or an arrow; else at
/// any space; else inside of <>. Outside as many brackets as can be and as late as there is room,
/// and not in a string; npos if that leaves nothing.
static size_t breakOf(StringRef line) {
  constexpr size_t columns = 160;
  if (line.size() <= columns)
    return StringRef::npos;
  size_t found = StringRef::npos;
  std::tuple<bool, bool, int> least; // whether it is inside of <> and any space; brackets around it
  int depth = 0, angles = 0;
  bool inString = false;
  for (size_t at = line.find_first_not_of(' '); at <= columns; ++at) {
    char c = line[at];
    if (inString && c == '\\')
      ++at;
    else if (c == '"')
      inString = !inString;
    if (inString)
      continue;
    if (StringRef("([{").contains(c))
      ++depth;
    if (StringRef(")]}").contains(c))
      --depth;
    if (c == '<' || (c == '>' && line[at - 1] != '-'))
      angles += c == '<' ? 1 : -1;
    if (c != ' ')
      continue;
    StringRef next = line.drop_front(at + 1);
    bool isAny = line[at - 1] != ',' && !next.starts_with(": ") && !next.starts_with("-> ");
    if (std::tuple cost(angles > 0, isAny, depth); found == StringRef::npos || cost <= least) {
      found = at;
      least = cost;
    }
  }
  return found;
}

/// The text, of which lines go on in the next where they are too long to be read.
static void printWrapped(StringRef text, llvm::raw_ostream &os) {
  while (!text.empty()) {
    auto [line, others] = text.split('\n');
    text = others;
    std::string indentation(line.size() - line.ltrim(' ').size() + 4, ' '), rest;
    for (size_t at; (at = breakOf(line)) != StringRef::npos; line = rest) {
      os << line.take_front(at) << "\n";
      rest = indentation + line.drop_front(at + 1).str();
    }
    os << line << "\n";
  }
}

void meshwright::printModule(Operation *op, llvm::raw_ostream &os, bool elideLargeConstants) {
  OpPrintingFlags flags;
  flags.printNameLocAsPrefix();
  if (elideLargeConstants)
    flags.elideLargeElementsAttrs();
  auto config = op->getAttrOfType<StringAttr>(configAttr);
  op->removeAttr(configAttr);
  AsmState state(op, flags);
  if (config)
    state.attachResourcePrinter(configAttr, [&](Operation *, AsmResourceBuilder &builder) {
      unsigned number = 0;
      for (StringRef line : llvm::split(config.getValue(), '\n'))
        builder.buildString("line" + std::to_string(number++), line);
    });
  std::string text;
  llvm::raw_string_ostream all(text);
  op->print(all, state);
  if (config)
    op->setAttr(configAttr, config);
  printWrapped(text, os);
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
class ValueNames {
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
  auto file = readInput(path, irInput);
  if (!file) {
    emitError(start) << "cannot read '" << path << "': " << llvm::toString(file.takeError());
    return {};
  }
  return parseModule(std::move(*file), context);
}

OwningOpRef<ModuleOp> meshwright::parseModule(std::unique_ptr<llvm::MemoryBuffer> text,
                                              MLIRContext &context) {
  Location start = FileLineColLoc::get(&context, text->getBufferIdentifier(), 0, 0);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  AsmParserState state;
  Block block;
  SmallVector<std::string> lines;
  ParserConfig parser(&context);
  parser.attachResourceParser(configAttr, [&](AsmParsedResourceEntry &entry) -> LogicalResult {
    FailureOr<std::string> line = entry.parseAsString();
    if (succeeded(line))
      lines.push_back(*line);
    return line;
  });
  if (failed(parseAsmSourceFile(sources, &block, parser, &state)))
    return {};
  ValueNames names;
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    for (auto [argument, text] :
         llvm::zip(definition.block->getArguments(), definition.arguments))
      names.add(argument, text.loc);
  // Several results have their op's one location.
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
    if (!definition.resultGroups.empty())
      names.add(definition.op->getResult(0), definition.resultGroups.front().definition.loc);
  names.apply();
  auto module =
      detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, start);
  if (module && !lines.empty())
    (*module)->setAttr(configAttr, StringAttr::get(&context, llvm::join(lines, "\n")));
  return module;
}
