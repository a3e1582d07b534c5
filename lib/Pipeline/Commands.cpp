//===- Commands.cpp - the commands of `meshwright` ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"

#include "llvm/ADT/StringExtras.h"

namespace meshwright {

llvm::ArrayRef<Command> commands() {
  static constexpr Command table[] = {
      {"compile", "MODEL [flags] -o EXE", "compile a config.json, its folder, or a .mlir file", true},
      {"fit", "MODEL --largest batch", "find the largest batch that a memory budget allows", true},
      {"predict", "MODEL --cluster CLUSTER", "predict step time, MFU and peak memory on a cluster", true},
      {"plan", "MODEL --cluster CLUSTER", "find the fastest parallel layout that fits in memory", true},
      {"calibrate", "-o FILE.toml", "measure this machine as a cluster file for predict and plan"},
      {"topology", "FILE --device NAME",
       "convert NCCL's topology or 'nvidia-smi topo -m' into a cluster file"},
      {"convert", "SETTINGS",
       "convert settings of Megatron-LM, DeepSpeed, torchtitan or nanotron into flags"},
      {"inspect", "EXE [--json|--ir PHASE]", "show the plan of an executable, or of a report"},
      {"verify", "MODEL [flags]",
       "train a small model with the compiled program and with the sequential one, and compare", true},
      {"certify", "EXE|GLOBAL.mlir LOCAL.mlir", "prove that a rank's program computes the training graph"},
      {"models", "[FILE|DIR]",
       "list the model families and their keys, or check a config.json, or a folder of them"},
      {"schedule", "NAME --stages P ...", "draw a pipeline schedule"},
      {"diff", "A B", "compare two plans"},
      {"checkpoint", "COMMAND PATH...", "inspect, verify, compare, convert, average and change checkpoints"},
      {"tokenize", "TEXT... -o DIR", "tokenize text into files of training data"},
      {"tokenizer", "train TEXT...", "train a BPE tokenizer on text"},
      {"run", "-n N EXE ARGS...", "start an executable's ranks"},
      {"plot", "FILE... [-o SVG]",
       "plot the losses in --metrics files; with --experts, the load of each expert"},
      {"replay", "DIR", "check a step that --dump wrote, op by op"},
      {"coord-check", "MODEL --widths W,..",
       "check that activations do not grow with the width of a model (muP)", true},
      {"completion", "bash|zsh|fish", "write completions of commands and flags for a shell"},
      {"manual", "[COMMAND] | -o DIR", "write manual pages"},
      {"help", "[COMMAND]", "show this, or a command's flags"}};
  return table;
}

/// `text` in lines, the first at `column`, the others indented to it.
static std::string wrapped(llvm::StringRef text, size_t column, size_t width) {
  std::string lines;
  size_t at = column;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    if (at > column && at + 1 + word.size() > width) {
      lines += "\n" + std::string(column, ' ');
      at = column;
    }
    lines += (at > column ? " " : "") + word.str();
    at += (at > column) + word.size();
  }
  return lines;
}

std::string usageText() {
  constexpr size_t column = 46, width = 104;
  std::string text = "Meshwright compiles transformer training into parallel executables.\n\n";
  auto row = [&](std::string start, llvm::StringRef summary) {
    start.resize(std::max(column, start.size() + 1), ' ');
    text += start + wrapped(summary, column, width) + "\n";
  };
  for (const Command &command : commands())
    row(std::string("  meshwright ") + command.name + " " + command.arguments, command.summary);
  row("  meshwright --version", "show the version");
  return text;
}

} // namespace meshwright
