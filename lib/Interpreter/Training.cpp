//===- Training.cpp - training runs under the interpreter -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Training.h"
#include "Train/GradientBlocks.h"
#include "Train/Quantize.h"
#include "Train/Storage.h"

#include "common/launch/Options.h"
#include "meshwright/runtime/Averages.h"
#include "meshwright/runtime/ExpertPlacement.h"
#include "meshwright/runtime/Int8Weights.h"
#include "meshwright/runtime/Normal.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// The error itself was emitted as a diagnostic.
static llvm::Error reported(const Twine &what) {
  return llvm::createStringError(what + " failed, see above");
}

//===--- variables ------------------------------------------------------------===//

/// The initial value of a parameter: a function of (seed, storage name, index).
static Tensor initialValue(train::VariableOp variable, RankedTensorType type, uint64_t seed) {
  Tensor result(type);
  double *out = result.writeFloats();
  auto value = float(variable.getInit().getValue().getValueAsDouble());
  if (variable.getInit().getKind() == "constant") {
    std::fill_n(out, result.size(), double(value));
    return result;
  }
  train::StorageAttr storage = variable.getStorageAttr();
  int64_t tensors = product(type.getShape().take_front(variable.getNumbered()));
  int64_t size = tensors ? result.size() / tensors : 0;
  for (int64_t number = 0; number < tensors; ++number) {
    std::string name = storageName(variable, type.getShape(), number);
    if (storage && storage.getFull() > 0)
      name += "[" + std::to_string(storage.getDim()) + ":" +
              std::to_string(offsetInFile(variable, type.getShape(), number)) + "]";
    std::array<uint32_t, 2> key = initialKey(seed, name);
    bool isUniform = variable.getInit().getKind() == "uniform";
    for (int64_t i = 0; i < size; ++i)
      out[number * size + i] = double(
          value * (isUniform ? uniformValue(key, uint64_t(i)) : normalValue(key, uint64_t(i))));
  }
  return result;
}

/// The codes of a weight, and the scales of its rows.
static std::pair<Tensor, Tensor> quantized(const Tensor &weight, RankedTensorType codes, RankedTensorType scales) {
  std::pair<Tensor, Tensor> result(codes, scales);
  int64_t columns = codes.getShape().back(), *code = result.first.writeIntegers();
  double *scale = result.second.writeFloats();
  std::vector<float> row(columns);
  for (int64_t r = 0; r < result.second.size(); ++r) {
    for (int64_t i = 0; i < columns; ++i)
      row[i] = float(weight.floats()[r * columns + i]);
    float ofRow = scaleOfRow(row.data(), columns);
    scale[r] = double(ofRow);
    for (int64_t i = 0; i < columns; ++i)
      code[r * columns + i] = codeOf(row[i], ofRow);
  }
  return result;
}

/// Weights of the model, or those that their codes stand for.
static Tensor dequantized(const Tensor &codes, const Tensor &scales) {
  Tensor result(Float32Type::get(codes.elementType().getContext()), codes.shape());
  double *out = result.writeFloats();
  int64_t columns = codes.shape().back();
  for (auto [i, code] : llvm::enumerate(codes.integers()))
    out[i] = double(code) * scales.floats()[int64_t(i) / columns];
  return result;
}

llvm::Error Training::initialize() {
  llvm::StringMap<train::VariableOp> scales; // by weight
  for (train::VariableOp variable : session->variables())
    if (train::isScale(variable))
      scales[variable.getOfAttr().getValue()] = variable;
  for (train::VariableOp variable : session->variables()) {
    if (train::isScale(variable))
      continue; // Its weight fills it.
    RankedTensorType type = session->globalType(variable);
    // Codes are made of weights in f32, and begin as zeros where they are optimizer states.
    bool isQuantized = variable.isParameter() && type.getElementType().isInteger(8);
    RankedTensorType codes = type;
    if (isQuantized)
      type = RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext()));
    Tensor value(type);
    // A master starts from what its parameter does, in all digits.
    bool isMaster = variable.getRole() == "master";
    train::VariableOp weight = variable;
    if (isMaster)
      weight =
          SymbolTable::lookupNearestSymbolFrom<train::VariableOp>(variable, variable.getOfAttr());
    bool isAdapter = weight->hasAttr(train::adapterAttr);
    const std::string &file = isAdapter && (train::isAddedByAdapter(weight) || !options->adapter.empty())
                                  ? options->adapter
                                  : options->init;
    // A module that is trained whole begins as the model's.
    OwningOpRef<train::VariableOp> inModel;
    if (isAdapter && !train::isAddedByAdapter(weight) && options->adapter.empty()) {
      inModel = cast<train::VariableOp>(weight->clone());
      weight = *inModel;
      weight.setStorageAttr(train::storageInModel(weight));
    }
    if (weight.isParameter() && !file.empty()) {
      llvm::Expected<Tensor> read = readVariable(file, weight, type);
      if (!read)
        return read.takeError();
      value = *read;
    } else if (weight.isParameter() || train::isOfCompression(variable) || train::isOfDelayedScaling(variable)) {
      value = initialValue(weight, type, uint64_t(options->seed));
    }
    if (isQuantized) {
      train::VariableOp scale = scales.lookup(variable.getSymName());
      if (!scale)
        return llvm::createStringError("@" + variable.getSymName() + " has codes of 8 bits, but no scale");
      auto [ofWeights, ofRows] = quantized(value, codes, session->globalType(scale));
      session->setVariable(scale, ofRows);
      value = ofWeights;
    }
    session->setVariable(variable, value);
  }
  return fillRowNorms(scales);
}

/// Fills variables that begin as norms of the rows of a weight, unless they have been read.
llvm::Error Training::fillRowNorms(const llvm::StringMap<train::VariableOp> &scales) {
  // By their place in files.
  std::map<std::tuple<std::string, int64_t, std::vector<int64_t>>, train::VariableOp> weights;
  auto placeOf = [](train::VariableOp variable, StringRef name) {
    train::StorageAttr storage = variable.getStorageAttr();
    std::vector<int64_t> runs;
    if (storage && storage.getRuns())
      runs = storage.getRuns().asArrayRef().vec();
    return std::tuple(name.str(), storage ? storage.getOffset() : 0, runs);
  };
  auto nameOf = [](train::VariableOp variable) {
    train::StorageAttr storage = variable.getStorageAttr();
    return storage ? storage.getTensor() : variable.getSymName();
  };
  for (train::VariableOp variable : session->variables())
    if (variable.isParameter())
      weights[placeOf(variable, nameOf(variable))] = variable;
  for (train::VariableOp variable : session->variables()) {
    if (!variable.isParameter() || variable.getInit().getKind() != "row_norms" || !options->adapter.empty())
      continue;
    StringRef name = nameOf(variable);
    name.consume_front(train::adapterPrefix);
    auto weight = weights.find(placeOf(variable, (name.take_front(name.rfind('.')) + ".weight").str()));
    FailureOr<Tensor> rows = weight == weights.end() ? FailureOr<Tensor>(failure()) : session->getVariable(weight->second);
    if (failed(rows))
      return llvm::createStringError("@" + variable.getSymName() + " has no weight of whose rows it begins as the norms");
    if (train::VariableOp scale = scales.lookup(weight->second.getSymName()))
      rows = dequantized(*rows, *session->getVariable(scale));
    Tensor norms(session->globalType(variable));
    double *out = norms.writeFloats();
    int64_t columns = norms.size() ? rows->size() / norms.size() : 0;
    for (int64_t row = 0; row < norms.size(); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i)
        sum += rows->floats()[row * columns + i] * rows->floats()[row * columns + i];
      out[row] = std::sqrt(sum);
    }
    session->setVariable(variable, norms);
  }
  return llvm::Error::success();
}

llvm::Expected<const train::Optimizer *> Training::optimizerOf(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(train::optimizerAttr);
  if (!name)
    return train::optimizers().front();
  const train::Optimizer *optimizer = nullptr;
  if (llvm::Error error = train::parseOption(name.getValue(), optimizer))
    return llvm::createStringError(train::optimizerAttr + " of the module: " +
                                   llvm::toString(std::move(error)));
  return optimizer;
}

llvm::Expected<Training> Training::create(Session &session, const train::Optimizer &optimizer,
                                          std::unique_ptr<Options> options) {
  Training training(session, optimizer, std::move(options));
  ModuleOp module = session.module();
  int64_t vocabulary = 0;
  std::pair<StringRef, int64_t *> sizes[] = {{train::batchAttr, &training.batch},
                                             {train::sequenceAttr, &training.sequence},
                                             {train::microbatchesAttr, &training.microbatches},
                                             {train::vocabularyAttr, &vocabulary}};
  for (auto [name, field] : sizes) {
    std::optional<int64_t> size = train::moduleSize(module, name);
    if (!size)
      return llvm::createStringError("the module has no attribute " + name +
                                     ", which a training run needs");
    *field = *size;
  }
  if (auto share = module->getAttrOfType<FloatAttr>(train::maskedShareAttr)) {
    int64_t token = train::moduleSize(module, train::maskTokenAttr).value_or(0);
    training.mask.emplace(share.getValueAsDouble(), token, vocabulary);
  }
  auto sequences = Sequences::open(
      *training.options, training.sequence, vocabulary,
      train::moduleSize(module, train::sourceSequenceAttr).value_or(0),
      train::moduleSize(module, train::startTokenAttr).value_or(0), module->hasAttr(train::dpoBetaAttr));
  if (!sequences)
    return sequences.takeError();
  training.sequences = std::move(*sequences);
  const Options &flags = *training.options;
  auto ramp = batchRampOf(flags.batchRamp, training.batch, training.microbatches);
  if (!ramp)
    return ramp.takeError();
  training.ramp = *ramp;
  LossScale start;
  start.scale = flags.initialLossScale;
  training.scaler = LossScaler(start, flags.lossScaleWindow, flags.hysteresis, flags.minLossScale);
  if (llvm::Error error = training.initialize())
    return error;
  return training;
}

int64_t Training::steps() const { return options->steps; }

//===--- inputs ---------------------------------------------------------------===//

static std::array<uint32_t, 2> keyOf(const Options &options, int64_t step) {
  return {uint32_t(options.seed), uint32_t(step)};
}

int64_t Training::positionOf(int64_t step) const {
  if (!ramp)
    return step * batch;
  int64_t position = 0;
  for (int64_t before = 0; before < step; ++before)
    position += ramp->batchAt(position);
  return position;
}

int64_t Training::batchOf(int64_t step) const { return ramp ? ramp->batchAt(positionOf(step)) : batch; }

llvm::Expected<double> Training::targetWeight(int64_t step) const {
  int64_t own = batchOf(step);
  llvm::Expected<int64_t> counted = mask ? mask->count(keyOf(*options, step), 0, own, sequence)
                                         : sequences->countedTargets(positionOf(step), own);
  if (!counted)
    return counted.takeError();
  return *counted ? 1 / double(*counted) : 0;
}

static bool hasInput(FunctionOpInterface function, StringRef name) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (Session::argumentName(function, i) == name)
      return true;
  return false;
}

/// Copies of two experts of each layer, those with the first numbers, in the last slots, which take the tokens at every other
/// position: no losses depend on where copies are, so any that take some tokens will do. `type`: [layers, residues + 1, slots].
static Tensor somePlacement(RankedTensorType type) {
  Tensor table(type);
  int64_t layers = type.getDimSize(0), residues = type.getDimSize(1) - 1, slots = type.getDimSize(2);
  int64_t *out = table.writeIntegers();
  std::fill_n(out, table.size(), int64_t(-1));
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t expert = 0; expert < std::min<int64_t>(2, slots); ++expert)
      for (int64_t row = 1; row <= residues; row += row < residues ? std::min<int64_t>(2, residues - row) : 1)
        out[(layer * (residues + 1) + row) * slots + slots - 1 - expert] = expert;
  return table;
}

/// Inputs of [microbatches, rows, ...], or of one microbatch [rows, ...].
llvm::Expected<Tensor> Training::input(FunctionOpInterface function, unsigned i, int64_t step,
                                       int64_t microbatch) {
  std::string name = Session::argumentName(function, i);
  RankedTensorType type = session->globalArgument(function, i);
  Tensor value(type);
  if (name == "target_weight") {
    llvm::Expected<double> weight = targetWeight(step);
    if (!weight)
      return weight.takeError();
    *value.writeFloats() = *weight;
    return value;
  }
  double updates = double(scaler.updates(step) + 1);
  std::map<StringRef, double> scalars = {{"lr", learningRateOf(*options, step)},
                                         {"grad_clip", options->gradClip},
                                         {"loss_scale", scaler.scale()}};
  for (const Options::Hyperparameter &number : options->hyperparameters)
    scalars[number.name] = options->hyperparameter(number, int64_t(updates));
  for (const train::Optimizer *row : {optimizer, optimizer->elsewhere})
    for (const train::BiasCorrection &correction : row ? row->corrections : optimizer->corrections)
      scalars[correction.name] =
          options->biasCorrection({correction.name.str(), correction.of.str(), correction.isPower}, int64_t(updates));
  if (auto power = scalars.find(updateWeightPower); power != scalars.end())
    scalars[updateWeight] = rates.share(learningRateOf(*options, step), power->second);
  if (auto decay = scalars.find(averageDecay); decay != scalars.end())
    scalars[averageCorrection] = 1 - std::pow(decay->second, updates);
  if (auto scalar = scalars.find(name); scalar != scalars.end()) {
    *value.writeFloats() = scalar->second;
    return value;
  }
  if (name == train::microbatchesInput) {
    *value.writeIntegers() = microbatchesOf(step);
    return value;
  }
  if (name == train::batchWeightInput) {
    *value.writeFloats() = double(batch) / double(batchOf(step));
    return value;
  }
  if (name == "key") {
    value.writeIntegers()[0] = int32_t(options->seed);
    value.writeIntegers()[1] = int32_t(step);
    return value;
  }
  if (name == expertPlacementInput)
    return somePlacement(type);
  bool isTokens = name == "tokens", isTargets = name == "targets", isIds = name == "sequence_ids";
  bool isPositions = name == "positions", isSource = name == "source", isLengths = name == "source_lengths";
  bool isReference = name == train::referenceInput;
  if (!isTokens && !isTargets && !isIds && !isPositions && !isSource && !isLengths && !isReference)
    return llvm::createStringError("@" + cast<SymbolOpInterface>(*function).getName() +
                                   " has an input " + name + ", which training does not know");
  bool one = type.getRank() == (train::isBySequence(name) ? 1 : 2); // One microbatch.
  unsigned rowDim = one ? 0 : 1;
  int64_t rows = type.getDimSize(rowDim);
  if (rows * microbatches != batch)
    return llvm::createStringError("input " + name + " has " + Twine(rows) +
                                   " sequences a microbatch, expected " +
                                   Twine(batch / microbatches));
  // Data rank d of D has the d-th contiguous batch / D sequences and splits them
  // into microbatches; its rows are the d-th part of every microbatch. Of a smaller batch the last ones are not read.
  // Blocks of compressed gradients are such parts, of which a device may have several.
  int64_t parts = std::max(session->partsOfArgument(function, i, rowDim),
                           train::moduleSize(session->module(), train::gradientBlocksAttr).value_or(1));
  std::vector<int32_t> tokens(sequence), targets(sequence), positions(sequence);
  int64_t *out = isReference ? nullptr : value.writeIntegers();
  double *references = isReference ? value.writeFloats() : nullptr;
  int64_t position = positionOf(step), own = batchOf(step);
  for (int64_t m = one ? microbatch : 0, end = one ? microbatch + 1 : microbatchesOf(step); m < end; ++m)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t part = row / (rows / parts), within = row % (rows / parts);
      int64_t id = part * (own / parts) + m * (rows / parts) + within;
      if (isIds) {
        *out++ = id;
        continue;
      }
      if (isReference) {
        llvm::Expected<double> reference = sequences->reference(position + id);
        if (!reference)
          return reference.takeError();
        *references++ = *reference;
        continue;
      }
      if (isSource || isLengths) {
        std::vector<int32_t> source(
            size_t(train::moduleSize(session->module(), train::sourceSequenceAttr).value_or(0)));
        llvm::Expected<int64_t> count = sequences->readSource(position + id, source.data());
        if (!count)
          return count.takeError();
        if (isSource)
          out = llvm::copy(source, out);
        else
          *out++ = *count;
        continue;
      }
      if (llvm::Error error = sequences->read(position + id, tokens.data(), positions.data(),
                                              targets.data()))
        return error;
      if (mask)
        mask->apply(keyOf(*options, step), id, sequence, tokens.data(), targets.data());
      out = llvm::copy(isTokens ? tokens : isTargets ? targets : positions, out);
    }
  return value;
}

llvm::Expected<TensorList> Training::inputs(FunctionOpInterface function, int64_t step,
                                            int64_t microbatch) {
  bool isOfPairs = session->module()->hasAttr(train::dpoBetaAttr);
  if (ramp && !hasInput(function, train::microbatchesInput))
    return llvm::createStringError("--batch-ramp needs a module that was compiled with --batch-ramp: @" +
                                   cast<SymbolOpInterface>(*function).getName() + " has no input " +
                                   train::microbatchesInput);
  if (!options->lossMask.empty() && (mask || !(hasInput(function, "target_weight") || isOfPairs)))
    return llvm::createStringError("--loss-mask needs a model that predicts the next token and @" +
                                   cast<SymbolOpInterface>(*function).getName() +
                                   " to have an input target_weight");
  if (!hasInput(function, "source") && !isOfPairs && options->documents.empty() == hasInput(function, "positions"))
    return llvm::createStringError("--documents goes with a module that was compiled with --packed: @" +
                                   cast<SymbolOpInterface>(*function).getName() + " has " +
                                   (options->documents.empty() ? "an" : "no") +
                                   " input positions");
  TensorList values;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    llvm::Expected<Tensor> value = input(function, i, step, microbatch);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

//===--- running --------------------------------------------------------------===//

llvm::Expected<Training::Step> Training::step(int64_t index) {
  FunctionOpInterface function = session->lookup("step");
  if (!function)
    return reported("looking for @step");
  llvm::Expected<TensorList> values = inputs(function, index, 0);
  if (!values)
    return values.takeError();
  TensorList results;
  if (failed(session->run(function, *values, results)))
    return reported("step " + Twine(index));
  Step step{NAN, NAN, learningRateOf(*options, index), std::nullopt, std::nullopt};
  for (auto [i, result] : llvm::enumerate(results)) {
    if (Session::resultName(function, i) == "loss")
      step.loss = result.asFloat();
    if (Session::resultName(function, i) == "grad_norm")
      step.gradNorm = result.asFloat();
    if (Session::resultName(function, i) == "aux_loss")
      step.auxLoss = result.asFloat();
  }
  if (hasInput(function, "loss_scale")) {
    step.lossScale = scaler.scale();
    scaler.update(!std::isfinite(step.gradNorm));
  }
  if (optimizer->gradientOffset() && std::isfinite(step.gradNorm)) // Other steps change nothing.
    rates.add(step.lr, options->hyperparameter(updateWeightPower));
  return step;
}

llvm::Error Training::forward(int64_t index) {
  FunctionOpInterface function = session->lookup("loss");
  if (!function)
    return reported("looking for @loss");
  llvm::Expected<TensorList> values = inputs(function, index, 0);
  if (!values)
    return values.takeError();
  TensorList results;
  if (failed(session->run(function, *values, results)))
    return reported("the forward of step " + Twine(index));
  return llvm::Error::success();
}

bool Training::showsGradients(const train::Optimizer &optimizer) {
  return !(optimizer.hasDirection() && !optimizer.elsewhere) && !optimizer.gradientOffset() &&
         !optimizer.quantizesStates;
}

bool Training::isAverageOfGradients(const train::Optimizer &optimizer, train::VariableOp variable) {
  return llvm::any_of(optimizer.states, [&](const train::OptimizerState &state) {
    return state.isAverageOfGradients && variable.getRole() == state.name;
  });
}

/// With all hyperparameters 0 and without clipping an average of gradients becomes the gradient.
/// Without one, a step at the rate 1 takes the gradient off.
llvm::Expected<Training::Gradients> Training::gradientsOfStep(int64_t index) {
  if (!showsGradients(*optimizer))
    return llvm::createStringError("--optimizer " + optimizer->name +
                                   " keeps no average of gradients and its steps are not multiples of them; "
                                   "compile for another, or stop before train-build-optimizer");
  auto isAverage = [&](train::VariableOp variable) { return isAverageOfGradients(*optimizer, variable); };
  SmallVector<std::pair<train::VariableOp, Tensor>> before;
  llvm::StringSet<> hasMoment, hasMaster;
  for (train::VariableOp variable : session->variables()) {
    FailureOr<Tensor> value = session->getVariable(variable);
    if (failed(value))
      return reported("reading a variable");
    before.push_back({variable, *value});
    if (isAverage(variable))
      hasMoment.insert(variable.getOfAttr().getValue());
    if (variable.getRole() == "master")
      hasMaster.insert(variable.getOfAttr().getValue());
  }
  Options asked = *options;
  LossScaler scale = scaler;
  for (Options::Hyperparameter &number : options->hyperparameters)
    number.value = 0;
  options->gradClip = 0;
  options->lr = 1;
  options->warmup = 0;
  options->lrSchedule = "constant";
  llvm::Expected<Step> made = step(index);
  *options = asked;
  scaler = scale;
  if (!made)
    return made.takeError();
  Gradients result;
  result.loss = made->loss;
  for (auto &[variable, old] : before) {
    bool moment = isAverage(variable);
    StringRef of = variable.isParameter() ? variable.getSymName() : variable.getOfAttr().getValue();
    bool updated =
        variable.getRole() == "master" || (variable.isParameter() && !hasMaster.contains(of) &&
                                           !variable->hasAttr(train::balanceRateAttr) &&
                                           !variable->hasAttr(train::frozenAttr));
    if (moment || (updated && !hasMoment.contains(of))) {
      FailureOr<Tensor> value = session->getVariable(variable);
      if (failed(value))
        return reported("reading a variable");
      double *gradient = value->writeFloats();
      if (!moment)
        for (auto [i, start] : llvm::enumerate(old.floats()))
          gradient[i] = start - gradient[i];
      train::VariableOp parameter = variable;
      if (!variable.isParameter())
        parameter =
            SymbolTable::lookupNearestSymbolFrom<train::VariableOp>(variable, variable.getOfAttr());
      result.values.push_back({parameter, *value});
    }
  }
  for (auto &[variable, old] : before)
    session->setVariable(variable, old);
  return result;
}

llvm::Expected<Training::Gradients> Training::gradients(int64_t index) {
  ModuleOp module = session->module();
  bool whole = module.lookupSymbol("gradients");
  if (!whole && !module.lookupSymbol("loss.gradients"))
    return gradientsOfStep(index);
  FunctionOpInterface function = session->lookup(whole ? "gradients" : "loss.gradients");
  if (!function)
    return reported("looking for the gradients");
  Gradients total;
  double scale = hasInput(function, "loss_scale") ? scaler.scale() : 1;
  for (int64_t m = 0; m < (whole ? 1 : microbatchesOf(index)); ++m) {
    llvm::Expected<TensorList> values = inputs(function, index, m);
    if (!values)
      return values.takeError();
    TensorList results;
    if (failed(session->run(function, *values, results)))
      return reported("computing gradients");
    size_t next = 0;
    for (unsigned i = 0; i < results.size(); ++i) {
      Tensor &result = results[i];
      auto of = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::gradientAttr);
      if (!of) {
        if (result.rank() == 0 && Session::resultName(function, i) != "aux_loss")
          total.loss += result.asFloat();
        continue;
      }
      double *unscaled = result.writeFloats();
      for (int64_t j = 0; j < result.size(); ++j)
        unscaled[j] /= scale;
      if (m == 0) {
        total.values.push_back({module.lookupSymbol<train::VariableOp>(of.getAttr()), result});
        continue;
      }
      double *sum = total.values[next++].second.writeFloats();
      for (auto [j, value] : llvm::enumerate(result.floats()))
        sum[j] += value;
    }
  }
  return total;
}
