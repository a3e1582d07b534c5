//===- Saving.cpp - what a run leaves, however it ends --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Saving.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/CheckpointOutput.h"
#include "common/checkpoint/FindCheckpoint.h"
#include "common/communication/RankText.h"
#include "common/monitor/StopSignal.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <algorithm>
#include <unistd.h>

using namespace meshwright;

bool meshwright::writesShards(const Options &options, const Plan &plan) {
  constexpr int64_t large = 10'000'000'000;
  return !options.save.empty() && (options.saveFormat == "sharded" ||
                                   (options.saveFormat == "auto" && plan.ranks() > 1 && checkpointBytes(plan) >= large));
}

Saving::Saving(Run &run) : run(run) {
  for (const Options::SaveTier &tier : run.options.saveTiers)
    tiers.push_back({tier.folder, tier.every});
}

void Saving::open(const TokenData &data) {
  const Options &options = run.options;
  if (run.isRoot())
    openFolders(data);
  takeResumed();
  isSharded = writesShards(options, run.plan);
  if (isSharded) {
    run.context.world->barrier(); // Rank 0 has made the folders, and a file in each.
    for (const Tier &tier : tiers)
      if (access((tier.path + "/.lock").c_str(), F_OK) != 0)
        fail("--save ", tier.path, ": rank ", run.context.rank(), " does not see the folder of rank 0, into which every rank ",
             "writes its part: name a folder on a file system that all machines share, or give --save-format merged");
  }
  if (options.asyncSave && isSharded)
    writer = std::make_unique<SnapshotWriter>(shardBytes(run.plan, run.context.rank()), run.context.unboundCores);
  else if (options.asyncSave && run.isRoot())
    writer = std::make_unique<SnapshotWriter>(checkpointBytes(run.plan), run.context.unboundCores);
  if (!options.buddy.empty())
    buddy = std::make_unique<Buddy>(run.context, options.buddy, options.save, goesOnFrom(options.buddy) ? run.checkpoint : "");
}

bool Saving::goesOnFrom(const std::string &folder) const {
  return !run.checkpoint.empty() && !folder.empty() &&
         isSameFile(canonicalPath(run.checkpoint).parent_path().string(), folder);
}

void Saving::openFolders(const TokenData &data) {
  const Options &options = run.options;
  if (!options.saveMerged.empty()) {
    prepareDirectory(options.saveMerged, "--save-merged");
    checkSpace(options.saveMerged, mergedBytes(run.plan), "--save-merged: the model");
  }
  // A run that goes on from one of its tiers goes on with all of them.
  bool isOfRun = std::any_of(tiers.begin(), tiers.end(), [&](const Tier &tier) {
    return goesOnFrom(tier.path);
  });
  isOfRun |= goesOnFrom(options.buddy);
  for (Tier &tier : tiers) {
    prepareDirectory(tier.path, "--save");
    tier.folder = std::make_unique<SaveFolder>(tier.path, run.checkpoint, isOfRun,
                                               options.saveCommit == "file" ? SaveFolder::ByFile : SaveFolder::ByRename);
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
}

/// The tier whose own checkpoint the run goes on from has it, and saves its state only when that has changed. Collective.
void Saving::takeResumed() {
  if (run.checkpoint.empty())
    return;
  std::filesystem::path from = canonicalPath(run.checkpoint);
  for (Tier &tier : tiers) {
    // Other ranks' machines need not see the folders.
    int32_t mine = run.isRoot() && from.filename() == checkpointName(run.state.step) &&
                   isSameFile(from.parent_path().string(), tier.path), isOwn = 0;
    run.context.world->allReduce(ElementType::I32, Reduction::Max, &mine, &isOwn, 1);
    if (!isOwn)
      continue;
    tier.saved = run.state.step;
    tier.position = run.state.position;
    tier.isResumed = true;
  }
}

void Saving::saveResumedFromMemory() {
  if (goesOnFrom(run.options.buddy))
    save();
}

void Saving::keepInMemory() {
  if (!buddy)
    return;
  run.download(run.plan.variableRange());
  buddy->keep(run.arena->variables(), run.state);
  run.forgetVariables();
}

void Saving::forgetMemory() {
  if (buddy)
    buddy->clear();
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
    else if (tier->isResumed && tier->folder)
      tier->folder->keepLatest(checkpointName(tier->saved)); // It may be an earlier one than the last.
  if (due.empty())
    return;
  finishWriting();
  run.download(run.plan.variableRange());
  if (run.options.asyncSave)
    saveBeside(due);
  else
    saveNow(due);
  run.forgetVariables();
  for (Tier *tier : due) {
    tier->saved = run.state.step;
    tier->position = run.state.position;
    tier->isResumed = false;
  }
}

/// `message`, and which checkpoint in `folder` is left.
[[noreturn]] static void failSaving(const std::string &message, const std::string &folder) {
  std::string latest = latestIn(folder);
  std::string state = contentsOf(latest + "/state.json");
  bool isThere = !latest.empty() && !state.empty() && missingCommit(latest, state).empty();
  fail(message, isThere ? text("; the last good one is ", folder, "/", latestName) : "");
}

void Saving::saveNow(const std::vector<Tier *> &due) {
  for (Tier *tier : due)
    try {
      saveCheckpoint(run.context, run.arena->variables(), tier->folder.get(), run.options.keep, run.state,
                     isSharded);
    } catch (const Error &error) {
      failSaving(error.what(), tier->path);
    }
}

/// Publishes the checkpoint of `state` that is written in `folder`.
static void publish(const Run &run, SaveFolder &folder, const TrainingState &state, const FileIds &ids,
                    std::filesystem::file_time_type time) {
  publishCheckpoint(run.plan, folder, state.step, stateText(run.plan, state, ids, folder.commitsByFile()), time, run.options.keep);
}

void Saving::saveBeside(const std::vector<Tier *> &due) {
  ActivityScope activity(run.context.status, "copying the state for a checkpoint");
  TraceScope span(run.context.trace.get(), "copy for checkpoint", "io");
  auto next = std::make_unique<Snapshot>();
  next->tiers = due;
  next->state = run.state;
  next->files = checkpointFiles(run.context, isSharded);
  const TrainingState &state = next->state;
  std::string what = text("saving the checkpoint of step ", state.step, ": ");
  try {
    checkState(run.context, run.arena->variables());
    for (Tier *tier : due) {
      if (!isSharded)
        break;
      std::string partial = tier->folder ? beginCheckpoint(run.plan, *tier->folder, state.step, checkpointBytes(run.plan)) : "";
      next->partials.push_back(broadcastText(*run.context.world, partial, 0));
    }
  } catch (const Error &error) {
    failSaving(text(what, error.what()), due.front()->path);
  }
  copyTensors(run.context, run.arena->variables(), next->files, writer ? writer->memory() : nullptr);
  isWriting = true;
  snapshot = std::move(next);
  if (!writer)
    return;
  writer->start([this, what, made = snapshot.get()] {
    for (size_t i = 0; i < made->tiers.size(); ++i)
      try {
        SaveFolder *folder = made->tiers[i]->folder.get();
        CheckpointOutput output(run.plan, isSharded ? made->partials[i]
                                                     : beginCheckpoint(run.plan, *folder, made->state.step, checkpointBytes(run.plan)));
        writer->write(made->files, output);
        made->ids.push_back(output.ids());
        if (!isSharded)
          publish(run, *folder, made->state, output.ids(), made->time);
      } catch (const std::exception &error) {
        failSaving(text(what, error.what()), made->tiers[i]->path);
      }
  });
}

/// Publishes the snapshot of which all ranks have written their files; on rank 0 beside training. Collective.
void Saving::publishSnapshot() {
  auto made = std::shared_ptr<Snapshot>(std::move(snapshot));
  for (FileIds &ids : made->ids)
    ids = gatherIds(*run.context.world, ids);
  if (!run.isRoot())
    return;
  writer->start([this, made] {
    for (size_t i = 0; i < made->tiers.size(); ++i)
      try {
        publish(run, *made->tiers[i]->folder, made->state, made->ids[i], made->time);
      } catch (const std::exception &error) {
        failSaving(text("saving the checkpoint of step ", made->state.step, ": ", error.what()), made->tiers[i]->path);
      }
  });
}

void Saving::finishWriting() {
  if (!isWriting)
    return;
  ActivityScope activity(run.context.status, "waiting for the checkpoint that is being written");
  for (bool isPublished = false; !isPublished;) {
    // The ranks meet after each part, so that a disk that hangs is missed at the deadline of a wait.
    for (int32_t open = 1; open;) {
      int32_t mine = writer && !writer->awaitPart();
      run.context.world->allReduce(ElementType::I32, Reduction::Max, &mine, &open, 1);
    }
    rethrow();
    isPublished = !isSharded || !snapshot;
    if (!isPublished)
      publishSnapshot();
  }
  isWriting = false;
  snapshot.reset();
}

/// Fails with the error that ended the checkpoint beside training, if one did.
void Saving::rethrow() {
  if (writer)
    writer->rethrow();
}

void Saving::saveMerged() {
  if (run.options.saveMerged.empty())
    return;
  run.download(run.plan.variableRange());
  meshwright::saveMerged(run.context, run.arena->variables(), run.options.saveMerged);
  run.forgetVariables();
}

int Saving::agree() {
  if (!stopsLater())
    return 0;
  rethrow();
  int size = run.context.world->size();
  // The first rank that has failed, counted from behind, and the signal.
  // And whether its part of a checkpoint is still being written.
  int32_t mine[3] = {failed.empty() ? 0 : size - run.context.rank(), stopRequest(), writer && !writer->isIdle()}, all[3];
  run.context.world->allReduce(ElementType::I32, Reduction::Max, mine, all, 3);
  if (isSharded && snapshot && all[2] == 0) {
    rethrow(); // It may have failed since.
    publishSnapshot();
  }
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
