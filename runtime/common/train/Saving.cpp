//===- Saving.cpp - what a run leaves, however it ends --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Saving.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/CheckpointOutput.h"
#include "common/monitor/StopSignal.h"
#include "meshwright/runtime/FileArguments.h"

#include <algorithm>
#include <unistd.h>

using namespace meshwright;

Saving::Saving(Run &run) : run(run) {
  for (const Options::SaveTier &tier : run.options.saveTiers)
    tiers.push_back({tier.folder, tier.every});
}

void Saving::open(const TokenData &data) {
  const Options &options = run.options;
  if (!run.isRoot())
    return;
  if (!options.saveMerged.empty()) {
    prepareDirectory(options.saveMerged, "--save-merged");
    checkSpace(options.saveMerged, mergedBytes(run.plan), "--save-merged: the model");
  }
  // A run that goes on from one of its tiers goes on with all of them.
  bool isOfRun = std::any_of(tiers.begin(), tiers.end(), [&](const Tier &tier) {
    return !run.checkpoint.empty() &&
           isSameFile(canonicalPath(run.checkpoint).parent_path().string(), tier.path);
  });
  for (Tier &tier : tiers) {
    prepareDirectory(tier.path, "--save");
    tier.folder = std::make_unique<SaveFolder>(tier.path, run.checkpoint, isOfRun);
    // Before the first step, and not after the hours that lead to the first checkpoint.
    checkSpace(tier.path, checkpointBytes(run.plan), "--save: a checkpoint");
    if (std::string tokenizer = data.tokenizer(); !tokenizer.empty())
      tier.folder->accompany(tokenizer);
    if (const std::set<std::string> &others = tier.folder->others(); !others.empty())
      run.note(
          text("--save ", tier.path, " has checkpoints of another run, up to ", *others.rbegin(),
               ": this run replaces those of its own steps, and --keep leaves the others; to go on "
               "from them, give --resume, or else name a folder of its own"));
  }
  if (options.asyncSave)
    writer = std::make_unique<SnapshotWriter>(run.plan, run.context.unboundCores);
}

bool Saving::isDue() const {
  return std::any_of(tiers.begin(), tiers.end(),
                     [&](const Tier &tier) { return tier.every && run.state.step % tier.every == 0; });
}

bool Saving::saveDue() {
  std::vector<Tier *> due;
  for (Tier &tier : tiers)
    if (tier.every && run.state.step % tier.every == 0)
      due.push_back(&tier);
  saveInto(due);
  return !due.empty();
}

void Saving::save() {
  std::vector<Tier *> all;
  for (Tier &tier : tiers)
    all.push_back(&tier);
  saveInto(all);
  finishWriting();
}

void Saving::saveInto(const std::vector<Tier *> &wanted) {
  std::vector<Tier *> due;
  for (Tier *tier : wanted)
    if (tier->saved != run.state.step || tier->position != run.state.position)
      due.push_back(tier);
  if (due.empty())
    return;
  finishWriting();
  run.download(run.plan.variableRange());
  if (run.options.asyncSave)
    saveBeside(due);
  else
    saveNow(due);
  run.arena->forget(run.plan.variableRange().begin, run.plan.variableRange().end);
  for (Tier *tier : due) {
    tier->saved = run.state.step;
    tier->position = run.state.position;
  }
}

/// `message`, and which checkpoint in `folder` is left.
[[noreturn]] static void failSaving(const std::string &message, const std::string &folder) {
  std::string latest = folder + "/latest";
  fail(message, access(latest.c_str(), F_OK) ? "" : "; the last good one is " + latest);
}

void Saving::saveNow(const std::vector<Tier *> &due) {
  for (Tier *tier : due)
    try {
      saveCheckpoint(run.context, run.arena->variables(), tier->folder.get(), run.options.keep, run.state);
    } catch (const Error &error) {
      failSaving(error.what(), tier->path);
    }
}

void Saving::saveBeside(const std::vector<Tier *> &due) {
  ActivityScope activity(run.context.status, "copying the state for a checkpoint");
  TraceScope span(run.context.trace.get(), "copy for checkpoint", "io");
  std::vector<CheckpointFile> files = checkpointFiles(run.context, run.state);
  try {
    checkState(run.context, run.arena->variables());
  } catch (const Error &error) {
    failSaving(text("saving the checkpoint of step ", run.state.step, ": ", error.what()), due.front()->path);
  }
  copyTensors(run.context, run.arena->variables(), files, writer ? writer->memory() : nullptr);
  isWriting = true;
  if (!writer)
    return;
  std::vector<SaveFolder *> folders;
  for (Tier *tier : due)
    folders.push_back(tier->folder.get());
  writer->start(std::move(files), run.state, std::move(folders), run.options.keep);
}

void Saving::finishWriting() {
  if (!isWriting)
    return;
  ActivityScope activity(run.context.status, "waiting for the checkpoint that is being written");
  // The ranks meet after each part, so that a disk that hangs is missed at the deadline of a wait.
  for (int32_t done = 0; !done;) {
    int32_t mine = writer && writer->awaitPart();
    run.context.world->allReduce(ElementType::I32, Reduction::Max, &mine, &done, 1);
  }
  isWriting = false;
  rethrow();
}

/// Fails with the error that ended the checkpoint beside training, if one did.
void Saving::rethrow() {
  try {
    if (writer)
      writer->rethrow();
  } catch (const Error &error) {
    failSaving(error.what(), writer->failedFolder());
  }
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
  rethrow();
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

/// The folder with the last checkpoint of this run, the first of several; null if there is none.
const Saving::Tier *Saving::lastTier() const {
  const Tier *last = nullptr;
  for (const Tier &tier : tiers)
    if (tier.saved > (last ? last->saved : -1))
      last = &tier;
  return last;
}

int64_t Saving::savedStep() const { return lastTier() ? lastTier()->saved : -1; }

int64_t Saving::lastStep() const {
  return lastTier() || run.checkpoint.empty() ? savedStep() : run.firstStep;
}

std::string Saving::lastCheckpoint() const {
  const Tier *last = lastTier();
  return last ? last->path + "/" + checkpointName(last->saved) : run.checkpoint;
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
       " is saved in ", tiers.front().path, "/", checkpointName(run.state.step));
}
