//===- Files.cpp - the interpreter's weights and tokens ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Files.h"

#include "common/checkpoint/SafeTensors.h"
#include "common/data/DataOrder.h"
#include "common/data/LearningRate.h"
#include "common/data/LogProbs.h"
#include "common/data/TokenData.h"
#include "common/launch/Device.h"
#include "common/launch/Options.h"
#include "common/monitor/Error.h"
#include "meshwright/CheckBatchRamp.h"
#include "meshwright/runtime/StorageName.h"
#include "meshwright/runtime/StorageRows.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

// The runtime's flag table asks its target, which the interpreter stands in for.
bool meshwright::hostComputes() { return true; }

static llvm::Error makeError(const std::exception &exception) {
  return llvm::createStringError(llvm::Twine(exception.what()));
}

/// Runs code of the runtime.
static llvm::Error guard(llvm::function_ref<void()> run) {
  try {
    run();
  } catch (const std::exception &exception) {
    return makeError(exception);
  }
  return llvm::Error::success();
}

//===--- safetensors ----------------------------------------------------------===//

static Tensor toTensor(const SafeTensorsReader::Tensor &file, Type elementType) {
  Tensor result(elementType, file.shape);
  std::vector<unsigned char> joined; // of shards
  const unsigned char *data = file.data;
  if (!file.chunks.empty()) {
    int64_t width = bytesOf(file.type);
    joined.resize(size_t(file.bytes));
    data = joined.data();
    forRuns(file, 0, result.size(), [&](const unsigned char *from, int64_t count, int64_t at) {
      std::memcpy(joined.data() + at * width, from, size_t(count * width));
    });
  }
  auto element = [&](int64_t i) -> double {
    switch (file.type) {
    case ElementType::F64:
      return reinterpret_cast<const double *>(data)[i];
    case ElementType::F32: {
      float value;
      std::memcpy(&value, data + 4 * i, 4);
      return value;
    }
    case ElementType::BF16:
    case ElementType::F16: {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * i, 2);
      return file.type == ElementType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
    }
    case ElementType::I16:
      fail("the file holds halves of numbers");
    case ElementType::I8:
      fail("the file holds codes of optimizer states");
    case ElementType::F8E4M3:
      return bf16ToFloat(f8E4M3ToBf16(uint8_t(file.data[i])));
    case ElementType::F8E5M2:
      return bf16ToFloat(f8E5M2ToBf16(uint8_t(file.data[i])));
    case ElementType::I32: {
      int32_t value;
      std::memcpy(&value, data + 4 * i, 4);
      return value;
    }
    }
    __builtin_unreachable();
  };
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat())
      result.writeFloats()[i] = element(i);
    else
      result.writeIntegers()[i] = int64_t(element(i));
  }
  return result;
}

/// The tensor, which must be there, undamaged, and have this shape.
static const SafeTensorsReader::Tensor &require(const SafeTensorsReader &file,
                                                const std::string &name, ArrayRef<int64_t> shape) {
  const SafeTensorsReader::Tensor *found = file.find(name);
  if (!found)
    fail(file.path(), ": has no tensor ", name);
  if (ArrayRef<int64_t>(found->shape) != shape)
    fail(file.path(), ": tensor ", name, " has shape ", shapeText(found->shape), ", expected ",
         shapeText(shape.vec()));
  file.verify(*found, name);
  return *found;
}

llvm::Expected<Tensor> interp::readTensor(StringRef path, StringRef name, RankedTensorType type) {
  Tensor result;
  if (llvm::Error error = guard([&] {
        SafeTensorsReader file(path.str(), "--input");
        result = toTensor(require(file, name.str(), type.getShape()), type.getElementType());
      }))
    return error;
  return result;
}

//===--- variables in files ---------------------------------------------------===//

namespace {
/// Where one layer of a variable lies in a file.
struct FileSlice {
  std::string name;
  SmallVector<int64_t> fileShape;
  SmallVector<int64_t> offset; ///< of the variable's box in the file tensor
  SmallVector<int64_t> box;    ///< before transposing
};
} // namespace

static Tensor transposed(const Tensor &x) {
  int64_t rank = x.rank(), m = x.dim(rank - 2), n = x.dim(rank - 1);
  SmallVector<int64_t> shape(x.shape());
  std::swap(shape[rank - 2], shape[rank - 1]);
  Tensor result(x.elementType(), shape);
  double *out = result.writeFloats();
  for (int64_t base = 0; base < x.size(); base += m * n)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        out[base + j * m + i] = x.floats()[base + i * n + j];
  return result;
}

std::string interp::storageName(train::VariableOp variable, ArrayRef<int64_t> shape,
                                int64_t number) {
  train::StorageAttr storage = variable.getStorageAttr();
  std::string name = storage ? storage.getTensor().str() : variable.getSymName().str();
  int64_t each = 1;
  if (variable.getNumbered() > variable.getStacked()) {
    each = shape[variable.getStacked()];
    name = numberedTensorName(name, number % each);
  }
  if (!variable.getStacked())
    return name;
  int64_t layer = number / each;
  return layerTensorName(name, layer).value_or(name + "." + std::to_string(layer));
}

/// A shape whose numbered dimensions are one.
static SmallVector<int64_t> byTensor(train::VariableOp variable, ArrayRef<int64_t> shape) {
  size_t numbered = variable.getNumbered();
  SmallVector<int64_t> result{product(shape.take_front(numbered))};
  llvm::append_range(result, shape.drop_front(numbered));
  return result;
}

/// Where tensor `number` of a variable of (global) shape `shape` lies.
static FileSlice fileSliceOf(train::VariableOp variable, ArrayRef<int64_t> shape, int64_t number) {
  ArrayRef<int64_t> own = shape.drop_front(variable.getNumbered());
  FileSlice slice;
  slice.box.assign(own.begin(), own.end());
  slice.offset.assign(own.size(), 0);
  slice.name = storageName(variable, shape, number);
  slice.fileShape = slice.box;
  train::StorageAttr storage = variable.getStorageAttr();
  if (!storage)
    return slice;
  size_t rank = slice.box.size();
  if (storage.getTranspose())
    std::swap(slice.box[rank - 2], slice.box[rank - 1]);
  slice.fileShape = slice.box;
  if (storage.getFull() > 0) {
    slice.fileShape[storage.getDim()] = storage.getFull();
    slice.offset[storage.getDim()] = storage.getOffset() + rowsAbove(storage.getTensor().str(), number, shape[variable.getStacked()],
                                                                     slice.box[storage.getDim()]);
  }
  return slice;
}

int64_t interp::offsetInFile(train::VariableOp variable, ArrayRef<int64_t> shape, int64_t number) {
  return fileSliceOf(variable, shape, number).offset[variable.getStorageAttr().getDim()];
}

/// Calls body(offset in the file's box, size of it, offset in the variable's box) for each part
/// of a layer that lies evenly in its file tensor, row by row where rows have a step.
static void
forEachPart(train::VariableOp variable, const FileSlice &slice,
            function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>, ArrayRef<int64_t>)> body) {
  SmallVector<int64_t> whole(slice.box.size(), 0);
  train::StorageAttr storage = variable.getStorageAttr();
  if (!storage || storage.getPeriod() == 0)
    return body(slice.offset, slice.box, whole);
  int64_t dim = storage.getDim();
  auto part = [&](const StoredRows &rows) {
    for (int64_t i = 0; i < rows.count; ++i) {
      SmallVector<int64_t> offset(slice.offset), box(slice.box), first(whole);
      offset[dim] = rows.fileRow + i * rows.step;
      first[dim] = rows.row + i;
      box[dim] = 1;
      body(offset, box, first);
    }
  };
  forEachStoredRows(storage.getOffset(), storage.getPeriod(), storage.getRuns().asArrayRef(), 0,
                    slice.box[dim], part);
}

static bool isTransposed(train::VariableOp variable) {
  return variable.getStorageAttr() && variable.getStorageAttr().getTranspose();
}

llvm::Expected<Tensor> interp::readVariable(StringRef path, train::VariableOp variable,
                                            RankedTensorType type, StringRef suffix) {
  SmallVector<int64_t> shape = byTensor(variable, type.getShape());
  Tensor result(type.getElementType(), shape);
  llvm::Error error = guard([&] {
    SafeTensorsReader file(path.str(), "--init");
    for (int64_t number = 0; number < shape[0]; ++number) {
      FileSlice slice = fileSliceOf(variable, type.getShape(), number);
      slice.name += suffix;
      if (train::StorageAttr storage = variable.getStorageAttr();
          storage && storage.getOptional() && !file.find(slice.name))
        continue; // zeros
      Tensor stored = toTensor(require(file, slice.name, slice.fileShape), type.getElementType());
      Tensor value(stored.elementType(), slice.box);
      forEachPart(variable, slice, [&](auto offset, auto box, auto first) {
        value.setBox(first, stored.box(offset, box));
      });
      if (isTransposed(variable))
        value = transposed(value);
      result.setSlice(number, value);
    }
  });
  if (error)
    return error;
  return result.reshaped(type.getShape());
}

llvm::Error interp::writeVariables(StringRef path,
                                   ArrayRef<std::pair<train::VariableOp, Tensor>> values) {
  llvm::MapVector<std::string, Tensor, llvm::StringMap<unsigned>> files;
  for (const auto &[variable, value] : values) {
    Tensor tensors = value.reshaped(byTensor(variable, value.shape()));
    for (int64_t number = 0; number < tensors.dim(0); ++number) {
      Tensor one = tensors.slice(number);
      FileSlice slice = fileSliceOf(variable, value.shape(), number);
      Tensor &whole =
          files.insert({slice.name, Tensor(one.elementType(), slice.fileShape)}).first->second;
      if (isTransposed(variable))
        one = transposed(one);
      forEachPart(variable, slice, [&](auto offset, auto box, auto first) {
        whole.setBox(offset, one.box(first, box));
      });
    }
  }
  return guard([&] {
    std::vector<SafeTensorsWriter::Entry> entries;
    for (const auto &[name, value] : files)
      entries.push_back({name, value.shape().vec()});
    SafeTensorsWriter writer(path.str(), entries);
    for (const auto &entry : files) {
      std::vector<float> data(entry.second.floats().begin(), entry.second.floats().end());
      writer.write(data.data(), int64_t(data.size()));
    }
    writer.finish();
  });
}

//===--- training runs --------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Options>> interp::parseTrainingOptions(const train::Optimizer &optimizer, bool averages,
                                                                       ArrayRef<std::string> args) {
  std::vector<const char *> argv = {"meshwright-interpret FILE --train"};
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  plan::Header plan;
  addToPlan(optimizer, plan);
  if (averages)
    train::addAveragesToPlan(plan);
  auto options = std::make_unique<Options>(plan);
  if (llvm::Error error = guard([&] {
        if (!parseOptions(int(argv.size()), argv.data(), *options)) {
          options = nullptr;
          return;
        }
        for (const char *flag :
             {"--save", "--resume", "--trace", "--eval-data", "--eval-loss-mask", "--ranks"})
          if (options->given(flag))
            fail(flag, " is the executable's alone: leave it away");
      }))
    return error;
  return options;
}

llvm::Expected<std::optional<BatchRamp>> interp::batchRampOf(const std::string &text, int64_t batch,
                                                             int64_t microbatches) {
  std::optional<BatchRamp> ramp;
  if (!text.empty())
    if (llvm::Error error = guard([&] { ramp.emplace(text, batch, microbatches); }))
      return error;
  return ramp;
}

llvm::Error interp::checkBatchRamp(const std::string &text, int64_t batch, int64_t microbatches) {
  return batchRampOf(text, batch, microbatches).takeError();
}

double interp::learningRateOf(const Options &options, int64_t step) {
  return learningRate(options, step);
}

namespace {
class FileSequences : public Sequences {
public:
  FileSequences(const Options &options, int64_t length, int64_t vocabulary,
                const std::optional<TokenData::Sources> &sources, bool pairs)
      : data({"--data", options.data}, {"--loss-mask", options.lossMask},
             {"--documents", options.documents}, options.tokens, length, vocabulary, sources, pairs),
        order(data.sources(options.sources), 0, options.shuffle, uint64_t(options.seed), pairs ? 2 : 1) {
    int64_t sequences = data.sequences(); // An Error if there are none.
    if (pairs && options.referenceLogProbs.empty())
      fail("--reference-log-probs is needed by a module with ", train::dpoBetaAttr.str(), ": give a file");
    if (pairs)
      logProbs.emplace(options.referenceLogProbs, "--reference-log-probs", sequences, data.name());
    data.check(0, 1, 1, [](int64_t) {});
  }

  llvm::Error read(int64_t position, int32_t *tokens, int32_t *positions,
                   int32_t *targets) override {
    return guard([&] { data.read(order.at(position), tokens, targets, positions); });
  }

  llvm::Expected<int64_t> readSource(int64_t position, int32_t *source) override {
    int64_t count = 0;
    if (llvm::Error error = guard([&] { count = data.readSource(order.at(position), source); }))
      return error;
    return count;
  }

  llvm::Expected<double> reference(int64_t position) override {
    double value = 0;
    if (llvm::Error error = guard([&] { value = double(logProbs->at(order.at(position))); }))
      return error;
    return value;
  }

  llvm::Expected<int64_t> countedTargets(int64_t position, int64_t sequences) override {
    int64_t counted = 0;
    if (llvm::Error error =
            guard([&] { counted = data.countTargets(order, position, sequences); }))
      return error;
    return counted;
  }

private:
  TokenData data;
  DataOrder order;
  std::optional<LogProbs> logProbs; ///< of pairs
};
} // namespace

llvm::Expected<std::unique_ptr<Sequences>> Sequences::open(const Options &options, int64_t length,
                                                           int64_t vocabulary, int64_t sourceLength,
                                                           int64_t startToken, bool pairs) {
  std::unique_ptr<Sequences> result;
  std::optional<TokenData::Sources> sources;
  if (sourceLength)
    sources = {{"--source", options.source},
               {"--source-documents", options.sourceDocuments},
               sourceLength,
               startToken};
  if (llvm::Error error =
          guard([&] { result = std::make_unique<FileSequences>(options, length, vocabulary, sources, pairs); }))
    return error;
  return result;
}
