//===- InsertedPass.cpp - passes of users between those of the compiler -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "InsertedPass.h"

#include "meshwright/runtime/Suggestion.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

Error refuseInserted(const InsertedPass &inserted, const llvm::Twine &why) {
  return createStringError("--insert-pass '" + inserted.text + "': " + why);
}

Expected<InsertedPass> parseInsertedPass(StringRef text) {
  auto [place, passes] = text.split(':');
  auto [side, name] = place.split('=');
  InsertedPass inserted{text.str(), side.trim() == "after", name.trim().str(), passes.trim().str()};
  if ((side.trim() != "after" && side.trim() != "before") || inserted.place.empty() ||
      inserted.passes.empty())
    return refuseInserted(inserted, "it is no place and pass; write after=PASS:MY-PASS or "
                                    "before=PASS:MY-PASS, e.g. after=dist-partition:my-pass");
  return inserted;
}

/// The names of all passes. MLIR's registry looks names up and lists none, but the parser of its
/// command line makes an option of each, which all belong to one list.
static std::vector<std::string> registeredPasses() {
  static PassPipelineCLParser parser("", "passes");
  auto &options = llvm::cl::getRegisteredOptions();
  std::vector<std::string> names;
  if (llvm::cl::Option *list = options.lookup("canonicalize"))
    for (auto [name, option] : options)
      if (option == list)
        names.push_back(name.str());
  llvm::sort(names);
  return names;
}

/// The first name of `passes`, a text as "my-pass{a=1},other" or "func.func(my-pass)", that is no
/// registered pass; empty if there is none.
static StringRef unknownIn(StringRef passes) {
  unsigned braces = 0;
  for (size_t begin = 0, at = 0; at <= passes.size(); ++at) {
    char c = at < passes.size() ? passes[at] : ',';
    braces += c == '{';
    if (braces) {
      if (c == '{' && braces == 1)
        if (StringRef name = passes.slice(begin, at).trim();
            !name.empty() && !PassInfo::lookup(name) && !PassPipelineInfo::lookup(name))
          return name;
      braces -= c == '}';
      begin = at + 1;
      continue;
    }
    if (c == '(')
      begin = at + 1; // An op, whose passes follow.
    if (c != ',' && c != ')')
      continue;
    StringRef name = passes.slice(begin, at).trim();
    if (!name.empty() && !PassInfo::lookup(name) && !PassPipelineInfo::lookup(name))
      return name;
    begin = at + 1;
  }
  return "";
}

Expected<OpPassManager> makeInsertedPass(const InsertedPass &inserted) {
  if (StringRef unknown = unknownIn(inserted.passes); !unknown.empty()) {
    std::string near = nearestName(unknown, registeredPasses());
    return refuseInserted(inserted, "no pass is called '" + unknown + "'" +
                                        (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                        (near.empty() ? ";" : "") +
                                        " passes of your own come from --load-pass-plugin FILE.so");
  }
  // A pass on functions runs on each of the module's.
  OpPassManager manager(ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
  std::string message;
  llvm::raw_string_ostream os(message);
  if (failed(parsePassPipeline(inserted.passes, manager, os)))
    return refuseInserted(inserted, StringRef(message).trim());
  return manager;
}

} // namespace meshwright
