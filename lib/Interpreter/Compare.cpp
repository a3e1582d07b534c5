//===- Compare.cpp - do two modules compute the same? -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Compare.h"
#include "Train/Quantize.h"

#include "meshwright/runtime/Normal.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

Tensor interp::randomTensor(RankedTensorType type, StringRef name, uint64_t seed, int64_t below) {
  std::array<uint32_t, 2> key = initialKey(seed, std::string_view(name.data(), name.size()));
  Tensor result(type);
  if (!result.isFloat()) {
    bool areCodes = type.getElementType().isInteger(8);
    int64_t limit = areCodes ? 255 : type.getElementType().isInteger(1) ? 2 : below, least = areCodes ? -127 : 0;
    int64_t *out = result.writeIntegers();
    for (int64_t i = 0; i < result.size(); ++i)
      out[i] = least + int64_t(uint64_t(randomBits(key, 0, i)) * uint64_t(limit) >> 32);
    return result;
  }
  double *out = result.writeFloats();
  if (type.getRank() == 0) {
    *out = double(float(0.1 + 0.8 * randomBits(key, 0, 0) * 0x1p-32));
    return result;
  }
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = double(normalValue(key, i));
  return result;
}

static Tensor randomVariable(Session &session, train::VariableOp variable,
                             const RandomOptions &options, int64_t below) {
  Tensor value =
      randomTensor(session.globalType(variable), variable.getSymName(), options.seed, below);
  if (!value.isFloat())
    return value;
  bool aroundOne = variable.getInit().getKind() == "constant" &&
                   variable.getInit().getValue().getValueAsDouble() == 1;
  double *data = value.writeFloats();
  for (int64_t i = 0; i < value.size(); ++i) {
    double small = double(0.3f * float(data[i]));
    if (train::isScale(variable))
      small /= 127;
    data[i] = !variable.isParameter() ? std::fabs(small) : aroundOne ? 1 + small : small;
  }
  return value;
}

FailureOr<SmallVector<NamedTensor>> interp::runOnRandom(ModuleOp module, StringRef name,
                                                        const RandomOptions &options) {
  FailureOr<Session> session = Session::create(module, options.ranks, options.precision);
  if (failed(session))
    return failure();
  FunctionOpInterface function = session->lookup(name);
  if (!function)
    return failure();
  int64_t below = options.integersBelow;
  if (below == 0)
    below = train::moduleSize(module, train::vocabularyAttr).value_or(2);
  TensorList arguments, results;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string input = Session::argumentName(function, i);
    RankedTensorType type = session->globalArgument(function, i);
    if (auto given = options.inputs.find(input); given != options.inputs.end()) {
      if (given->second.shape() != type.getShape())
        return function.emitError()
               << "input " << input << " is " << type << ", given is " << given->second.type();
      arguments.push_back(given->second);
    } else {
      arguments.push_back(randomTensor(type, input, options.seed, below));
    }
  }
  for (train::VariableOp variable : session->variables())
    session->setVariable(variable, randomVariable(*session, variable, options, below));
  if (failed(session->run(function, arguments, results)))
    return failure();

  SmallVector<NamedTensor> left;
  for (auto [i, value] : llvm::enumerate(results))
    left.push_back({Session::resultName(function, i), value});
  for (train::VariableOp variable : session->variables()) {
    FailureOr<Tensor> value = session->getVariable(variable);
    if (failed(value))
      return failure();
    left.push_back({"@" + variable.getSymName().str(), *value});
  }
  return left;
}

bool interp::agree(ArrayRef<NamedTensor> a, ArrayRef<NamedTensor> b, double tolerance,
                   raw_ostream &report) {
  llvm::StringMap<const Tensor *> others;
  for (const NamedTensor &value : b)
    others[value.name] = &value.value;
  auto isVariable = [](const NamedTensor &value) { return value.name.front() == '@'; };
  for (const NamedTensor &value : b)
    if (!isVariable(value) &&
        llvm::none_of(a, [&](const NamedTensor &one) { return one.name == value.name; })) {
      report << "only the second has " << value.name << "\n";
      return false;
    }
  for (const NamedTensor &value : a) {
    const Tensor *other = others.lookup(value.name);
    if (!other && isVariable(value))
      continue;
    if (!other) {
      report << "only the first has " << value.name << "\n";
      return false;
    }
    Difference apart = difference(*other, value.value);
    if (!apart.sameKind) {
      report << value.name << " is " << value.value.type() << " in the first and " << other->type()
             << " in the second\n";
      return false;
    }
    if (!apart.finite || !(apart.relative <= tolerance)) {
      report << value.name
             << " differs: " << (apart.finite ? "" : "infinite or not a number in one of them; ")
             << "norm of the difference over norm " << llvm::format("%.3g", apart.relative)
             << ", largest difference " << llvm::format("%.3g", apart.largest) << ", allowed "
             << llvm::format("%.3g", tolerance) << "\n";
      return false;
    }
  }
  return true;
}
