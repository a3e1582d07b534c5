//===- Saving.cpp - what a run leaves, however it ends --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Saving.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/monitor/StopSignal.h"

#include <unistd.h>

using namespace meshwright;

void Saving::open(const TokenData &data) {
  const Options &options = run.options;
  if (run.isRoot() && !options.saveMerged.empty()) {
    prepareDirectory(options.saveMerged, "--save-merged");
    checkSpace(options.saveMerged, mergedBytes(run.plan), "--save-merged: the model");
  }
  if (!run.isRoot() || options.save.empty())
    return;
  prepareDirectory(options.save, "--save");
  folder = std::make_unique<SaveFolder>(options.save, run.checkpoint);
  // Before the first step, and not after the hours that lead to the first checkpoint.
  checkSpace(options.save, checkpointBytes(run.plan), "--save: a checkpoint");
  if (std::string tokenizer = data.tokenizer(); !tokenizer.empty())
    folder->accompany(tokenizer);
  if (const std::set<std::string> &others = folder->others(); !others.empty())
    run.note(
        text("--save ", options.save, " has checkpoints of another run, up to ", *others.rbegin(),
             ": this run replaces those of its own steps, and --keep leaves the others; to go on "
             "from them, give --resume, or else name a folder of its own"));
}

void Saving::save() {
  if (run.options.save.empty() || (saved == run.state.step && savedPosition == run.state.position))
    return;
  run.download(run.plan.variableRange());
  try {
    saveCheckpoint(run.context, run.arena->variables(), folder.get(), run.options.keep, run.state);
  } catch (const Error &error) {
    std::string latest = run.options.save + "/latest";
    fail(error.what(), access(latest.c_str(), F_OK) ? "" : "; the last good one is " + latest);
  }
  run.arena->forget(run.plan.variableRange().begin, run.plan.variableRange().end);
  saved = run.state.step;
  savedPosition = run.state.position;
}

void Saving::saveMerged() {
  if (run.options.saveMerged.empty())
    return;
  run.download(run.plan.variableRange());
  meshwright::saveMerged(run.context, run.arena->variables(), run.options.saveMerged);
  run.arena->forget(run.plan.variableRange().begin, run.plan.variableRange().end);
}

int Saving::agree() {
  if (!stopsLater())
    return 0;
  int size = run.context.world->size();
  // The first rank that has failed, counted from behind, and the signal.
  int32_t mine[2] = {failed.empty() ? 0 : size - run.context.rank(), stopRequest()}, all[2];
  run.context.world->allReduce(ElementType::I32, Reduction::Max, mine, all, 2);
  if (all[0] == 0)
    return all[1];
  // All fail with its message, in 32-bit words.
  int from = size - all[0];
  auto words = int32_t(failed.size() / 4 + 1);
  run.context.world->broadcast(ElementType::I32, &words, 1, from);
  failed.resize(size_t(words) * 4, ' ');
  run.context.world->broadcast(ElementType::I32, failed.data(), words, from);
  failed.erase(failed.find_last_not_of(' ') + 1);
  failSaved(failed);
}

std::string Saving::lastCheckpoint() const {
  return saved < 0 ? run.checkpoint : run.options.save + "/" + checkpointName(saved);
}

void Saving::failSaved(const std::string &message) {
  if (run.options.save.empty() || run.state.step == run.firstStep)
    fail(message);
  try {
    save();
  } catch (const Error &error) {
    fail(message, "; and ", error.what());
  }
  fail(message, "; the state after ", run.state.step, run.state.step == 1 ? " step" : " steps",
       " is saved in ", run.options.save, "/", checkpointName(run.state.step));
}
