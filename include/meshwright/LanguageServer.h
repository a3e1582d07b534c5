//===- LanguageServer.h - MLIR's language server for all dialects ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LANGUAGESERVER_H
#define MESHWRIGHT_LANGUAGESERVER_H

namespace meshwright {

/// Runs MLIR's language server, which sees no message that would end it: the client gets the error,
/// or the document its mark. The exit status.
int languageServerMain(int argc, char **argv);

} // namespace meshwright

#endif // MESHWRIGHT_LANGUAGESERVER_H
