//===- meshwright-import.cpp - prints a model's floor-1 module --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What `meshwright compile --emit train` prints, as MLIR prints it, for the frontend's own tests.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Frontend.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

int main(int argc, char **argv) {
  namespace cl = llvm::cl;
  cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("config.json"));
  cl::opt<int64_t> batch("batch", cl::init(1)), sequence("seq", cl::Required),
      microbatches("microbatches", cl::init(1)), blocks("expert-blocks", cl::init(1));
  cl::opt<double> dropout("dropout", cl::init(-1)), masked("mlm", cl::init(0));
  cl::opt<int64_t> maskToken("mask-id", cl::init(-1));
  cl::opt<bool> packed("packed");
  cl::opt<int64_t> source("source-seq", cl::init(0));
  cl::ParseCommandLineOptions(argc, argv, "Prints a model's training graph\n");

  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  meshwright::ModelOptions options;
  options.batch = batch;
  options.sequence = sequence;
  options.microbatches = microbatches;
  options.expertBlocks = blocks;
  options.packed = packed;
  options.sourceSequence = source;
  if (dropout.getNumOccurrences())
    options.dropout = dropout;
  if (masked.getNumOccurrences())
    options.masked = {masked, maskToken};
  auto module = meshwright::importHuggingFace(model, options, context);
  if (failed(module))
    return 1;
  (*module)->print(llvm::outs(), mlir::OpPrintingFlags().printNameLocAsPrefix());
  llvm::outs() << "\n";
  return 0;
}
