//===- meshwright-lsp-server.cpp - editor support for all dialects ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/LanguageServer.h"

int main(int argc, char **argv) { return meshwright::languageServerMain(argc, argv); }
