//===- EmbeddedIr.cpp - the IR that executables carry ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The section is a line "PHASE SIZE COMPRESSED" for each text, an empty line, and the texts as zlib
// compresses them.
//
//===----------------------------------------------------------------------===//
#include "meshwright/EmbeddedIr.h"

#include "ProgramEmitter.h"
#include "Sections.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Compression.h"

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

void embedIr(mlir::ModuleOp lowered, const PhaseTexts &texts) {
  std::string head, body;
  for (auto &[phase, text] : texts) {
    llvm::SmallVector<uint8_t, 0> compressed;
    llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(text), compressed,
                                      llvm::compression::zlib::BestSizeCompression);
    head += (phaseNames[unsigned(phase)] + " " + llvm::Twine(text.size()) + " " +
             llvm::Twine(compressed.size()) + "\n")
                .str();
    body += llvm::toStringRef(compressed);
  }
  if (!texts.empty())
    codegen::emitText(lowered, "ir", head + "\n" + body);
}

void embedCertificate(mlir::ModuleOp lowered, StringRef certificate) {
  codegen::emitText(lowered, "certificate", certificate);
}

Expected<std::string> readCertificate(StringRef file) { return readSection(file, "certificate"); }

Expected<PhaseTexts> readEmbeddedIr(StringRef file) {
  Expected<std::string> section = readSection(file, "ir");
  if (!section)
    return section.takeError();
  PhaseTexts texts;
  if (section->empty())
    return texts;
  auto damaged = [&] {
    return createStringError("the IR in '" + file + "' is damaged; compile the model again");
  };
  auto [head, body] = StringRef(*section).split("\n\n");
  for (StringRef line : llvm::split(head, '\n')) {
    llvm::SmallVector<StringRef> words;
    line.split(words, ' ');
    size_t size = 0, compressed = 0;
    auto *phase = words.empty() ? std::end(phaseNames) : llvm::find(phaseNames, words[0]);
    if (words.size() != 3 || phase == std::end(phaseNames) || words[1].getAsInteger(10, size) ||
        words[2].getAsInteger(10, compressed) || compressed > body.size())
      return damaged();
    llvm::SmallVector<uint8_t, 0> text;
    if (Error error = llvm::compression::zlib::decompress(
            llvm::arrayRefFromStringRef(body.take_front(compressed)), text, size)) {
      llvm::consumeError(std::move(error));
      return damaged();
    }
    texts[Phase(phase - std::begin(phaseNames))] = llvm::toStringRef(text).str();
    body = body.drop_front(compressed);
  }
  return texts;
}

} // namespace meshwright
