//===- EditorHelp.cpp - what editors show beside MLIR's own -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "EditorHelp.h"

#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Train/Train.h"
#include "meshwright/AttributeTable.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace meshwright {

StringRef documentationOf(StringRef op) {
  std::string heading = ("### `" + op + "`\n").str();
  for (StringRef page : opPages()) {
    size_t at = page.find(heading);
    if (at == StringRef::npos)
      continue;
    StringRef section = page.substr(at + heading.size());
    return section.take_front(std::min(section.find("\n### "), section.find("\n## "))).trim();
  }
  return "";
}

//===--- types in words -------------------------------------------------------------===//

/// "data and tensor".
static std::string namesOf(ArrayRef<StringAttr> axes) {
  return llvm::join(llvm::map_range(axes, [](StringAttr axis) { return axis.getValue(); }), " and ");
}

/// The devices along axes of `mesh`, by name; the parts of an axis are it.
static int64_t devicesAlong(ArrayRef<StringAttr> axes, const dist::Mesh &mesh) {
  int64_t devices = 1;
  for (StringAttr axis : axes)
    devices *= mesh.size(mesh.named(axis.getValue()));
  return devices;
}

/// Where a tensor is, and by how much a rank's part is smaller.
static std::string shardingInWords(dist::ShardingAttr sharding, const dist::Mesh *mesh, int64_t &parts) {
  std::vector<std::string> phrases;
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
    if (!axes.getAxes().empty()) {
      phrases.push_back("sharded over " + namesOf(axes.getAxes()) + " in dimension " + std::to_string(dim));
      if (mesh)
        parts *= devicesAlong(axes.getAxes(), *mesh);
    }
  if (!sharding.getPartial().empty())
    phrases.push_back((sharding.getMax() ? "one of the candidates for a maximum over " : "one term of a sum over ") +
                      namesOf(sharding.getPartial()));
  if (!sharding.getRoot().empty())
    phrases.push_back("held by the first rank of " + namesOf(sharding.getRoot()) + " alone");
  return phrases.empty() ? "replicated on all ranks" : llvm::join(phrases, ", ");
}

static std::string typeInWords(Type type, const dist::Mesh *mesh) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() || !shaped.getElementType().isIntOrFloat())
    return "";
  std::string sizes = llvm::join(
      llvm::map_range(shaped.getShape(), [](int64_t size) { return std::to_string(size); }), " x ");
  std::string element;
  llvm::raw_string_ostream(element) << shaped.getElementType();
  int64_t bytes = shaped.getNumElements() * llvm::divideCeil(shaped.getElementTypeBitWidth(), 8u);
  std::string words = (sizes.empty() ? "one number" : sizes) + " of " + element +
                      llvm::formatv(", {0:N0} bytes", bytes).str();
  auto sharding = dist::shardingOf(type);
  if (!sharding)
    return words;
  int64_t parts = 1;
  std::string where = shardingInWords(sharding, mesh, parts);
  if (parts > 1)
    words += llvm::formatv(", {0:N0} on a rank", llvm::divideCeil(uint64_t(bytes), uint64_t(parts)));
  return words + "; " + where;
}

//===--- hover ----------------------------------------------------------------------===//

/// The place in `document`; nothing past its end.
static std::optional<size_t> offsetOf(StringRef document, EditorPosition position) {
  size_t at = 0;
  for (unsigned line = 0; line < position.line; ++line) {
    at = document.find('\n', at);
    if (at == StringRef::npos)
      return std::nullopt;
    ++at;
  }
  size_t end = std::min(document.find('\n', at), document.size());
  return at + position.character <= end ? std::optional(at + position.character) : std::nullopt;
}

static bool contains(SMRange range, const char *at) {
  return range.isValid() && range.Start.getPointer() <= at && at <= range.End.getPointer();
}

static bool contains(const AsmParserState::SMDefinition &definition, const char *at) {
  return contains(definition.loc, at) || llvm::any_of(definition.uses, [&](SMRange use) { return contains(use, at); });
}

static std::string describeValue(Value value, StringRef what, const dist::Mesh *mesh) {
  std::string words = typeInWords(value.getType(), mesh), text;
  llvm::raw_string_ostream os(text);
  os << what << "\n\n";
  if (!words.empty())
    os << words << "\n\n";
  os << "```mlir\n" << value.getType() << "\n```\n";
  return text;
}

static std::string describeOp(Operation *op, const dist::Mesh *mesh) {
  StringRef name = op->getName().getStringRef(), documentation = documentationOf(name);
  if (documentation.empty())
    return "";
  std::string text = ("### `" + name + "`\n\n").str();
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    if (std::string words = typeInWords(type, mesh); !words.empty())
      text += "- result" + (op->getNumResults() > 1 ? " " + std::to_string(i) : "") + ": " + words + "\n";
  return text + "\n" + documentation.str() + "\n";
}

std::string hoverText(StringRef document, EditorPosition position, MLIRContext &context) {
  std::optional<size_t> offset = offsetOf(document, position);
  if (!offset)
    return "";
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(document), SMLoc());
  const char *at = sources.getMemoryBuffer(sources.getMainFileID())->getBufferStart() + *offset;
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  Block block;
  AsmParserState state;
  FallbackAsmResourceMap resources;
  ParserConfig config(&context, /*verifyAfterParse=*/false, &resources);
  if (failed(parseAsmSourceFile(sources, &block, config, &state)))
    return "";
  // What a type says in words needs the sizes of the mesh it names.
  std::optional<dist::Mesh> mesh;
  block.walk([&](dist::MeshOp op) { mesh = op.getMesh(); });
  const dist::Mesh *sizes = mesh ? &*mesh : nullptr;
  for (const AsmParserState::OperationDefinition &op : state.getOpDefs()) {
    if (contains(op.loc, at))
      return describeOp(op.op, sizes);
    for (auto [i, group] : llvm::enumerate(op.resultGroups))
      if (contains(group.definition, at))
        return describeValue(op.op->getResult(group.startIndex),
                             "Result of `" + op.op->getName().getStringRef().str() + "`", sizes);
  }
  for (const AsmParserState::BlockDefinition &of : state.getBlockDefs())
    for (auto [i, argument] : llvm::enumerate(of.arguments))
      if (contains(argument, at))
        return describeValue(of.block->getArgument(i), "Argument " + std::to_string(i), sizes);
  return "";
}

//===--- completion -----------------------------------------------------------------===//

std::optional<llvm::json::Array> completeAttributes(StringRef document, EditorPosition position,
                                                    MLIRContext &context) {
  std::optional<size_t> offset = offsetOf(document, position);
  if (!offset)
    return std::nullopt;
  StringRef before = document.take_front(*offset);
  before = before.substr(before.rfind('\n') == StringRef::npos ? 0 : before.rfind('\n') + 1);
  // Inside the braces of an op on this line; behind a key and = is a value.
  size_t open = before.rfind('{');
  if (open == StringRef::npos || before.find('}', open) != StringRef::npos)
    return std::nullopt;
  StringRef key = before.substr(open + 1);
  key = key.substr(key.rfind(',') == StringRef::npos ? 0 : key.rfind(',') + 1).ltrim();
  if (key.contains('='))
    return std::nullopt;
  llvm::json::Array items;
  auto add = [&](StringRef name, StringRef detail, StringRef meaning, StringRef example) {
    if (!name.starts_with(key))
      return;
    constexpr int property = 10; // CompletionItemKind.
    items.push_back(llvm::json::Object{{"label", name.str()}, {"kind", property}, {"detail", detail.str()},
                                       {"documentation", meaning.str()},
                                       {"insertText", example.empty() ? name.str() : (name + " = " + example).str()}});
  };
  // What ops declare. The op's name is the last word with a dialect before the braces.
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(before.take_front(open), words, " \t(");
  for (StringRef word : llvm::reverse(words))
    if (auto op = RegisteredOperationName::lookup(word, &context)) {
      for (StringAttr name : op->getAttributeNames())
        add(name.getValue(), ("declared by " + word).str(), "", "");
      break;
    }
  for (ArrayRef<KnownAttribute> table : {train::knownAttributes(), dist::knownAttributes(),
                                         exec::knownAttributes(), train::commonAttributes()})
    for (const KnownAttribute &row : table)
      add(row.name, (row.type.text + ", on " + row.place.text).str(), row.meaning, row.type.example);
  return items;
}

} // namespace meshwright
