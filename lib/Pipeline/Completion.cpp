//===- Completion.cpp - completions for shells ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Commands, flags and choices are those of the tables that the parser reads. Commands that parse
// their few flags themselves name them in their help, where these are found.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "meshwright/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

namespace {
/// A flag as shells see it.
struct Completed {
  std::string name;  ///< without dashes
  std::string value; ///< the word for its value; empty: it has none
  std::string help;
  std::vector<std::string> choices = {};
  FileUse use = FileUse::None;
};
} // namespace

/// The beginning of a help text, which says what a flag is.
static std::string brief(StringRef help) {
  size_t end = help.size();
  for (StringRef stop : {"; ", ": ", " (", ", e.g.", ". "})
    end = std::min(end, help.find(stop));
  return help.take_front(end).str();
}

static std::vector<Completed> compilerFlags() {
  std::vector<Completed> flags;
  for (const Flag &flag : compileFlags())
    // The next word is no value of a flag that may have none.
    flags.push_back({flag.name, *flag.without ? "" : flag.value, brief(flag.help), flag.choices, flag.use});
  return flags;
}

/// The flags that a command's help names. Whether one takes a file is not known there.
static std::vector<Completed> flagsIn(StringRef help) {
  std::vector<Completed> flags;
  std::set<std::string> seen;
  for (size_t at = help.find("--"); at != StringRef::npos; at = help.find("--", at + 2)) {
    StringRef name = help.substr(at + 2).take_while(
        [](char c) { return llvm::isAlnum(c) || c == '-'; });
    // "--help" in a sentence about another command is no flag of this one.
    bool isSpelled = at == 0 || !(llvm::isAlnum(help[at - 1]) || help[at - 1] == '-');
    if (name.empty() || !isSpelled || !seen.insert(name.str()).second)
      continue;
    StringRef rest = help.substr(at + 2 + name.size());
    StringRef value;
    if (rest.consume_front(" ") || rest.consume_front("="))
      value = rest.take_while([](char c) { return llvm::isUpper(c) || c == ',' || c == '.' || c == '|'; });
    flags.push_back({name.str(), value.rtrim(",.|").str(), ""});
  }
  return flags;
}

/// The flags of every command, the compiler's own first.
static Expected<std::map<std::string, std::vector<Completed>>> allFlags() {
  std::map<std::string, std::vector<Completed>> all;
  for (const Command &command : commands()) {
    Expected<std::string> help = helpOf(command.name);
    if (!help)
      return help.takeError();
    std::vector<Completed> &flags = all[command.name];
    std::set<std::string> known;
    if (command.compiles) {
      flags = compilerFlags();
      for (const Completed &flag : flags)
        known.insert(flag.name);
    }
    if (command.name != StringRef("compile"))
      for (Completed &flag : flagsIn(*help))
        if (known.insert(flag.name).second)
          flags.push_back(std::move(flag));
    if (known.insert("help").second)
      flags.push_back({"help", "", "show the command's flags"});
  }
  return all;
}

static std::string namesOf(const std::vector<Completed> &flags) {
  return llvm::join(llvm::map_range(flags, [](const Completed &flag) { return "--" + flag.name; }), " ");
}

static bool isFolder(FileUse use) {
  return use == FileUse::InputFolder || use == FileUse::OutputFolder;
}

//===--- bash ---------------------------------------------------------------------===//

static void writeBash(const std::map<std::string, std::vector<Completed>> &all, llvm::raw_ostream &os) {
  os << "# Completions of meshwright for bash, written by 'meshwright completion bash'.\n"
        "_meshwright() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
        "  # Bash makes words of --flag=value's parts.\n"
        "  [[ $word == '=' ]] && word=\n"
        "  [[ $last == '=' ]] && last=${COMP_WORDS[COMP_CWORD-2]}\n"
        "  if ((COMP_CWORD == 1)) || [[ $command == help && COMP_CWORD -eq 2 ]] || [[ $command == manual && COMP_CWORD -eq 2 ]]; then\n"
        "    COMPREPLY=($(compgen -W '"
     << llvm::join(llvm::map_range(commands(), [](const Command &c) { return StringRef(c.name); }), " ")
     << " --help --version' -- \"$word\"))\n    return\n  fi\n"
        "  case $last in\n";
  for (const Completed &flag : compilerFlags()) {
    if (flag.value.empty())
      continue;
    os << "  --" << flag.name << (flag.name == "output" ? "|-o" : "") << ") ";
    if (!flag.choices.empty())
      os << "COMPREPLY=($(compgen -W '" << llvm::join(flag.choices, " ") << "' -- \"$word\")); return ;;\n";
    else if (isFolder(flag.use))
      os << "COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n";
    else if (flag.use != FileUse::None)
      os << "COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
    else
      os << "COMPREPLY=(); return ;;\n";
  }
  os << "  esac\n  local flags=\n  case $command in\n";
  for (auto &[command, flags] : all)
    os << "  " << command << ") flags='" << namesOf(flags) << "' ;;\n";
  os << "  esac\n"
        "  case $word in\n"
        "  -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
        "  *) if [[ $command == completion ]]; then COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\"))\n"
        "     else COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n"
        "  esac\n}\n"
        "complete -o filenames -F _meshwright meshwright\n";
}

//===--- zsh ----------------------------------------------------------------------===//

/// `text` inside quotes and brackets of _arguments.
static std::string forZsh(StringRef text) {
  std::string escaped;
  for (char c : text)
    if (c == '\'')
      escaped += "'\\''";
    else if (StringRef("[]:\\").contains(c))
      (escaped += '\\') += c;
    else
      escaped += c;
  return escaped;
}

static void writeZsh(const std::map<std::string, std::vector<Completed>> &all, llvm::raw_ostream &os) {
  os << "#compdef meshwright\n# Completions of meshwright for zsh, written by 'meshwright completion zsh'.\n"
        "_meshwright() {\n  local -a commands=(\n";
  for (const Command &command : commands())
    os << "    '" << command.name << ":" << forZsh(command.summary) << "'\n";
  os << "  )\n"
        "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
        "  local command=$words[2]\n"
        "  shift words\n"
        "  ((CURRENT--))\n"
        "  case $command in\n"
        "  completion) _values shell bash zsh fish ;;\n"
        "  help|manual) _describe command commands ;;\n";
  for (auto &[command, flags] : all) {
    if (command == "completion" || command == "help" || command == "manual")
      continue;
    os << "  " << command << ") _arguments";
    for (const Completed &flag : flags) {
      os << " \\\n    '*--" << flag.name << (flag.value.empty() ? "" : "=") << "[" << forZsh(flag.help) << "]";
      if (!flag.value.empty()) {
        os << ":" << forZsh(flag.value) << ":";
        if (!flag.choices.empty())
          os << "(" << llvm::join(flag.choices, " ") << ")";
        else if (isFolder(flag.use))
          os << "_files -/";
        else if (flag.use != FileUse::None || command != "compile")
          os << "_files";
      }
      os << "'";
    }
    os << " \\\n    '*:file:_files' ;;\n";
  }
  os << "  esac\n}\n_meshwright \"$@\"\n";
}

//===--- fish ---------------------------------------------------------------------===//

static std::string forFish(StringRef text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\'' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

static void writeFish(const std::map<std::string, std::vector<Completed>> &all, llvm::raw_ostream &os) {
  os << "# Completions of meshwright for fish, written by 'meshwright completion fish'.\n";
  for (const Command &command : commands())
    os << "complete -c meshwright -n __fish_use_subcommand -f -a " << command.name << " -d '"
       << forFish(command.summary) << "'\n";
  os << "complete -c meshwright -n __fish_use_subcommand -f -l version -d 'show the version'\n"
        "complete -c meshwright -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
  for (auto &[command, flags] : all)
    for (const Completed &flag : flags) {
      os << "complete -c meshwright -n '__fish_seen_subcommand_from " << command << "' -l " << flag.name;
      if (flag.name == "output")
        os << " -s o";
      if (!flag.choices.empty())
        os << " -x -a '" << llvm::join(flag.choices, " ") << "'";
      else if (isFolder(flag.use))
        os << " -x -a '(__fish_complete_directories)'";
      else if (flag.use != FileUse::None)
        os << " -r -F";
      else if (!flag.value.empty())
        os << (command == "compile" ? " -x" : " -r");
      if (!flag.help.empty())
        os << " -d '" << forFish(flag.help) << "'";
      os << "\n";
    }
}

Error writeCompletion(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  static constexpr StringRef usage =
      "usage: meshwright completion bash|zsh|fish\n"
      "  Writes completions of commands, flags and their choices as a script for a shell. An installation\n"
      "  has them where the shells look. Else, for this shell only:\n"
      "    bash: source <(meshwright completion bash)\n"
      "    zsh:  meshwright completion zsh > ~/.zfunc/_meshwright   (a folder of $fpath)\n"
      "    fish: meshwright completion fish | source\n";
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help"))
    return llvm::make_error<HelpRequested>(usage.str());
  static constexpr StringRef shells[] = {"bash", "zsh", "fish"};
  if (args.size() != 1 || !llvm::is_contained(shells, args[0])) {
    if (args.empty())
      return createStringError("no shell given\n" + usage);
    if (args.size() > 1)
      return createStringError("unexpected '" + args[1] + "'\n" + usage);
    return createStringError("no completions for the shell '" + args[0] +
                             "'; there are some for bash, zsh and fish");
  }
  Expected<std::map<std::string, std::vector<Completed>>> all = allFlags();
  if (!all)
    return all.takeError();
  (args[0] == "bash" ? writeBash : args[0] == "zsh" ? writeZsh : writeFish)(*all, os);
  return Error::success();
}

} // namespace meshwright
