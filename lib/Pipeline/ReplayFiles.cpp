//===- ReplayFiles.cpp - programs and steps that executables carry and dump --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ReplayFiles.h"

#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "common/plan/ElementType.h"
#include "meshwright/InputFile.h"
#include "meshwright/Json.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo());
  return text;
}

Expected<std::string> tensorForm(ModuleOp module) {
  auto textOf = [](ModuleOp program) {
    return program->getAttrOfType<StringAttr>(exec::tensorFormAttr);
  };
  if (!dist::hasPrograms(module))
    return textOf(module) ? textOf(module).str() : std::string();
  OwningOpRef<ModuleOp> whole = ModuleOp::create(module.getLoc());
  (*whole)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  SmallVector<ModuleOp> programs = dist::programsOf(module);
  for (Operation &op : module.getBody()->getOperations()) {
    auto program = dyn_cast<ModuleOp>(op);
    if (!program || !llvm::is_contained(programs, program)) {
      whole->push_back(op.clone());
      continue;
    }
    if (!textOf(program))
      return std::string();
    OwningOpRef<ModuleOp> parsed =
        parseSourceString<ModuleOp>(textOf(program), module.getContext());
    if (!parsed)
      return createStringError("the tensor form of a program is damaged");
    whole->push_back(parsed.release());
  }
  return print(*whole);
}

Expected<RankDump> RankDump::open(StringRef directory, int64_t rank) {
  RankDump dump;
  std::string name = (directory + "/rank-" + llvm::Twine(rank)).str();
  dump.path = name + ".json";
  auto text = readInput(dump.path, indexInput);
  if (!text)
    return createStringError("cannot read '" + dump.path + "': " + toString(text.takeError()) +
                             "; a run with --dump writes it when the step has ended");
  auto bytes = readInput(name + ".bin", dumpInput);
  if (!bytes)
    return createStringError("cannot read '" + name + ".bin': " + toString(bytes.takeError()));
  dump.bytes = std::move(*bytes);
  Expected<llvm::json::Value> index = parseJson((*text)->getBuffer());
  if (!index)
    return createStringError("'" + dump.path + "' is damaged: " + toString(index.takeError()));
  dump.index = std::move(*index);
  auto damaged = [&] { return createStringError("'" + dump.path + "' is no index of a dump"); };
  const llvm::json::Object *object = dump.index.getAsObject();
  const llvm::json::Array *values = object ? object->getArray("values") : nullptr;
  if (!values || !object->getArray("before") || !object->getArray("after"))
    return damaged();
  dump.ranks = object->getInteger("ranks").value_or(0);
  dump.step = object->getInteger("step").value_or(0);
  if (object->getInteger("rank").value_or(-1) != rank || dump.ranks <= rank)
    return damaged();
  for (const llvm::json::Value &value : *values) {
    const llvm::json::Array *entry = value.getAsArray();
    int64_t numbers[4];
    if (!entry || entry->size() != 4)
      return damaged();
    for (auto [number, element] : llvm::zip(numbers, *entry)) {
      if (!element.getAsInteger())
        return damaged();
      number = *element.getAsInteger();
    }
    dump.values[{numbers[0], numbers[1]}].push_back({numbers[2], numbers[3]});
    ++dump.count;
  }
  return std::move(dump);
}

static double floatAt(Type type, const char *bytes) {
  if (isa<Float8E4M3FNType>(type))
    return bf16ToFloat(f8E4M3ToBf16(uint8_t(*bytes)));
  if (isa<Float8E5M2Type>(type))
    return bf16ToFloat(f8E5M2ToBf16(uint8_t(*bytes)));
  uint16_t narrow = 0;
  if (!type.isF32())
    memcpy(&narrow, bytes, sizeof(narrow));
  if (type.isBF16())
    return bf16ToFloat(narrow);
  if (type.isF16())
    return f16ToFloat(narrow);
  float value = 0;
  memcpy(&value, bytes, sizeof(value));
  return value;
}

Expected<interp::Tensor> RankDump::read(FileRange range, const llvm::Twine &what,
                                        RankedTensorType type) const {
  Type element = type.getElementType();
  bool known = element.isF32() || element.isBF16() || element.isF16() || isa<Float8E4M3FNType, Float8E5M2Type>(element) ||
               element.isInteger(32) || element.isInteger(8);
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  if (!known || range.bytes != size * type.getNumElements() || range.begin < 0 ||
      range.begin + range.bytes > int64_t(bytes->getBufferSize())) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return createStringError("'" + path + "': " + what + " should be " + text + ", but it has " +
                             llvm::Twine(range.bytes) + " bytes from byte " +
                             llvm::Twine(range.begin) + " on of " +
                             llvm::Twine(bytes->getBufferSize()));
  }
  const char *from = bytes->getBufferStart() + range.begin;
  interp::Tensor tensor(type);
  if (tensor.isFloat()) {
    double *to = tensor.writeFloats();
    for (int64_t i = 0; i < tensor.size(); ++i)
      to[i] = floatAt(element, from + i * size);
    return tensor;
  }
  int64_t *to = tensor.writeIntegers();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (size == 1) {
      to[i] = int8_t(from[i]);
      continue;
    }
    int32_t value;
    memcpy(&value, from + i * size, sizeof(value));
    to[i] = value;
  }
  return tensor;
}

Expected<interp::Tensor> RankDump::state(StringRef when, StringRef kind, StringRef name,
                                         RankedTensorType type) const {
  for (const llvm::json::Value &value : *index.getAsObject()->getArray(when)) {
    const llvm::json::Object *entry = value.getAsObject();
    if (!entry || entry->getString("kind") != kind || entry->getString("name") != name)
      continue;
    // As many bytes as its own type and shape have, which must be those asked for.
    int64_t bytes = 0;
    auto element = elementTypeNamed(entry->getString("type").value_or(""));
    if (const llvm::json::Array *shape = entry->getArray("shape"); shape && element) {
      bytes = bytesOf(*element);
      for (const llvm::json::Value &dim : *shape)
        bytes *= dim.getAsInteger().value_or(0);
    }
    return read({entry->getInteger("begin").value_or(-1), bytes}, kind + " " + name, type);
  }
  return createStringError("'" + path + "' has no " + kind + " " + name + " " + when +
                           " the step, which its program.mlir has");
}

Expected<interp::Tensor> RankDump::next(int64_t value, int64_t result, RankedTensorType type) {
  std::vector<FileRange> &ranges = values[{value, result}];
  size_t run = used[{value, result}]++;
  if (run >= ranges.size())
    return createStringError("'" + path + "' has result " + llvm::Twine(result) + " of op " +
                             llvm::Twine(value) + " " + llvm::Twine(ranges.size()) +
                             " times, but its program.mlir computes it more often");
  ++taken;
  return read(ranges[run], "value " + llvm::Twine(value), type);
}

} // namespace meshwright
