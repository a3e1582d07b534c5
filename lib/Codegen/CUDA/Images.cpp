//===- Images.cpp - what a GPU's driver loads -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Images.h"
#include "Codegen/CUDA/Lowering.h"
#include "meshwright/AtomicFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

/// ptxas in PATH, or where the CUDA toolkit is installed; empty if there is none.
static std::string findAssembler() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  SmallVector<std::string> folders;
  if (const char *home = getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> refs(folders.begin(), folders.end());
  auto found = llvm::sys::findProgramByName("ptxas", refs);
  return found ? *found : "";
}

/// Reads what ptxas -v prints: "Function properties for NAME", spills in the next line, and
/// "Used N registers" in the one after.
static void readReport(StringRef log, unsigned arch, std::vector<cuda::Assembled> &assembled) {
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  std::optional<cuda::Assembled> function;
  for (StringRef line : lines) {
    auto before = [&](StringRef text) {
      int64_t number = 0;
      StringRef head = line.take_front(line.find(text)).rtrim();
      head.substr(head.find_last_not_of("0123456789") + 1).getAsInteger(10, number);
      return number;
    };
    if (line.contains("Function properties for ")) {
      function = {line.rsplit(' ').second.str(), arch, 0, 0};
    } else if (function && line.contains(" bytes spill stores")) {
      function->spilledBytes = before(" bytes spill stores") + before(" bytes spill loads");
    } else if (function && line.contains(" registers")) {
      function->registers = before(" registers");
      assembled.push_back(std::move(*function));
      function.reset();
    }
  }
}

/// Code that ptxas makes of `ptx`.
static llvm::Expected<std::string> assemble(StringRef assembler, StringRef ptx, unsigned arch,
                                            std::vector<cuda::Assembled> &assembled) {
  SmallString<128> paths[3];
  SmallVector<std::unique_ptr<llvm::FileRemover>> removers;
  for (auto [path, suffix] : llvm::zip(paths, ArrayRef<const char *>{"ptx", "cubin", "log"})) {
    if (auto error = llvm::sys::fs::createTemporaryFile("meshwright", suffix, path))
      return llvm::createStringError(error, "cannot make a temporary file: " + error.message());
    removers.push_back(std::make_unique<llvm::FileRemover>(path));
  }
  if (llvm::Error error = writeFileAtomically(ptx, paths[0]))
    return error;
  std::string target = ("-arch=sm_" + Twine(arch)).str(), message;
  StringRef arguments[] = {assembler, "-v", target, paths[0], "-o", paths[1]};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(paths[2]), StringRef(paths[2])};
  if (llvm::sys::ExecuteAndWait(assembler, arguments, std::nullopt, redirects, /*SecondsToWait=*/0,
                                /*MemoryLimit=*/0, &message) != 0) {
    auto text = llvm::MemoryBuffer::getFile(paths[2]);
    return llvm::createStringError(assembler + " cannot assemble kernels for sm_" + Twine(arch) +
                                   ": " + message + "\n" +
                                   (text ? (*text)->getBuffer() : StringRef()));
  }
  if (auto text = llvm::MemoryBuffer::getFile(paths[2]))
    readReport((*text)->getBuffer(), arch, assembled);
  auto code = llvm::MemoryBuffer::getFile(paths[1], /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!code)
    return llvm::createStringError(code.getError(), "cannot read '" + paths[1] +
                                                        "': " + code.getError().message());
  return (*code)->getBuffer().str();
}

FailureOr<std::vector<cuda::Image>> cuda::makeImages(ModuleOp converted,
                                                     ArrayRef<std::string> archs,
                                                     llvm::raw_ostream &log,
                                                     std::vector<Assembled> &assembled) {
  std::vector<Image> texts;
  for (StringRef name : archs) {
    auto arch = archNumber(converted, name);
    if (failed(arch))
      return failure();
    if (llvm::any_of(texts, [&](const Image &image) { return image.arch == *arch; }))
      return converted.emitError("--gpu-arch ") << llvm::join(archs, ",") << " names " << name << " twice";
    auto text = writePTX(converted, name);
    if (failed(text))
      return failure();
    texts.push_back({*arch, true, std::move(*text)});
  }
  llvm::sort(texts, [](const Image &a, const Image &b) { return a.arch < b.arch; });

  std::vector<Image> images;
  std::string assembler = findAssembler();
  if (assembler.empty()) {
    log << "note: there is no ptxas in PATH, CUDA_HOME/bin or /usr/local/cuda/bin: the executable "
           "carries PTX alone, which the driver assembles at every first start\n";
    images = std::move(texts);
  } else {
    std::vector<llvm::Expected<std::string>> codes;
    std::vector<std::vector<Assembled>> reports(texts.size());
    for (size_t i = 0; i < texts.size(); ++i)
      codes.push_back("");
    std::vector<std::thread> workers;
    for (size_t i = 0; i < texts.size(); ++i)
      workers.emplace_back([&, i] {
        llvm::consumeError(codes[i].takeError());
        codes[i] = assemble(assembler, texts[i].bytes, texts[i].arch, reports[i]);
      });
    for (std::thread &worker : workers)
      worker.join();
    for (std::vector<Assembled> &report : reports)
      llvm::append_range(assembled, report);
    LogicalResult result = success();
    for (auto [text, code] : llvm::zip(texts, codes)) {
      if (code)
        images.push_back({text.arch, false, std::move(*code)});
      else
        result = converted.emitError(llvm::toString(code.takeError()));
    }
    if (failed(result))
      return failure();
    images.push_back(std::move(texts.front()));
  }
  // The driver reads text up to its zero.
  for (Image &image : images)
    if (image.isPTX)
      image.bytes.push_back('\0');
  return images;
}
