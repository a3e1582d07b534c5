//===- meshwright-interpret.cpp - runs IR directly --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/InterpretTool.h"
#include "meshwright/Register.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  meshwright::registerDialects(registry);
  return meshwright::interp::interpretMain(argc, argv, registry);
}
