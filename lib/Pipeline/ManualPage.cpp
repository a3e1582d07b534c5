//===- ManualPage.cpp - manual pages of the commands ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Codegen.h"
#include "meshwright/Options.h"
#include "meshwright/runtime/Suggestion.h"
#include "meshwright/runtime/Version.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

/// `text` as roff reads it: a dash is a minus, which can be copied and searched.
static std::string roff(StringRef text) {
  std::string escaped;
  bool isStart = true;
  for (char c : text) {
    if (isStart && (c == '.' || c == '\''))
      escaped += "\\&";
    isStart = c == '\n';
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

static void writeHead(StringRef name, StringRef summary, llvm::raw_ostream &os) {
  os << ".\\\" Written by 'meshwright manual'.\n.TH " << roff(name.upper()) << " 1 \"\" \"Meshwright " << version
     << "\" \"Meshwright\"\n.SH NAME\n" << roff(name) << " \\- " << roff(summary) << "\n";
}

static void writeCommands(llvm::raw_ostream &os) {
  writeHead("meshwright", "compile transformer training into parallel executables", os);
  os << ".SH SYNOPSIS\n.B meshwright\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH COMMANDS\n";
  for (const Command &command : commands())
    os << ".TP\n.BI \"meshwright " << roff(command.name) << "\" \" " << roff(command.arguments) << "\"\n"
       << roff(command.summary) << "\n";
  os << ".SH SEE ALSO\n";
  for (auto [i, command] : llvm::enumerate(commands().drop_back()))
    os << (i ? ",\n" : "") << ".BR meshwright\\-" << roff(command.name) << " (1)";
  os << "\n";
}

/// The flags of `compile` by their sections.
static void writeFlags(llvm::raw_ostream &os) {
  const CompileOptions defaults;
  StringRef group;
  os << ".SH OPTIONS\n";
  for (const Flag &flag : compileFlags()) {
    if (group != flag.group)
      os << ".SS " << roff(group = flag.group) << "\n";
    os << ".TP\n.B " << (flag.name == StringRef("output") ? "\\-o\\fR, \\fB" : "") << "\\-\\-" << roff(flag.name);
    if (*flag.value)
      os << " \\fI" << roff(flag.value) << "\\fR";
    os << "\n" << roff(flag.help);
    if (!flag.choices.empty())
      os << ". Choices: " << roff(llvm::join(flag.choices, ", "));
    if (std::string initial = flag.text(defaults); !initial.empty() && flag.form != Flag::Switch)
      os << ". Default: " << roff(initial);
    os << "\n";
  }
}

static Error writePage(const Command &command, llvm::raw_ostream &os) {
  writeHead(std::string("meshwright-") + command.name, command.summary, os);
  os << ".SH SYNOPSIS\n.B meshwright " << roff(command.name) << "\n.I " << roff(command.arguments) << "\n";
  if (command.name == StringRef("compile")) {
    writeFlags(os);
  } else {
    Expected<std::string> help = helpOf(command.name);
    if (!help)
      return help.takeError();
    os << ".SH DESCRIPTION\n.nf\n" << roff(StringRef(*help).rtrim()) << "\n.fi\n";
  }
  os << ".SH SEE ALSO\n.BR meshwright (1)\n";
  return Error::success();
}

/// All pages as files in `folder`.
static Error writeAll(StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return createStringError("cannot make the folder '" + folder + "': " + error.message());
  auto write = [&](const llvm::Twine &name, StringRef text) {
    return writeFileAtomically(text, (folder + "/" + name + ".1").str());
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCommands(os);
  if (Error error = write("meshwright", text))
    return error;
  for (const Command &command : commands().drop_back()) { // help is no page.
    text.clear();
    if (Error error = writePage(command, os))
      return error;
    if (Error error = write(llvm::Twine("meshwright-") + command.name, text))
      return error;
  }
  return Error::success();
}

Error writeManual(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  static constexpr StringRef usage =
      "usage: meshwright manual [COMMAND]\n"
      "       meshwright manual -o DIR\n"
      "  Writes the manual page of a command, or of meshwright itself, as man reads it:\n"
      "    meshwright manual compile | man -l -\n"
      "  With -o, writes all pages to files of a folder, as an installation has them.\n";
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help"))
    return llvm::make_error<HelpRequested>(usage.str());
  registerTargets(); // They have flags.
  if (args.size() == 2 && args[0] == "-o")
    return writeAll(args[1]);
  if (args.size() > 1 || (!args.empty() && StringRef(args[0]).starts_with("-")))
    return createStringError("unexpected '" + args.back() + "'\n" + usage);
  if (args.empty()) {
    writeCommands(os);
    return Error::success();
  }
  for (const Command &command : commands().drop_back())
    if (args[0] == command.name)
      return writePage(command, os);
  std::vector<StringRef> names;
  for (const Command &command : commands().drop_back())
    names.push_back(command.name);
  std::string near = nearestName(args[0], names);
  return createStringError("there is no command '" + args[0] + "'" +
                           (near.empty() ? "; 'meshwright help' lists all" : "; did you mean '" + near + "'?"));
}

} // namespace meshwright
