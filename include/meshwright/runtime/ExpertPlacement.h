//===- ExpertPlacement.h - copies of popular experts on several devices ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Along mesh axis `expert` each device has equally many experts of a layer, its own, and slots for copies of
// others. A placement says which expert's matrices a slot has and which of this expert's tokens go there instead of
// to its own device: those whose positions have certain residues. It is an input of the program, a table of i32 for each
// layer, of a row for each residue and a last one, and of a column for each slot, those of a device one behind the other:
//
//   row r, column c     the expert of whose tokens slot c takes those with residue r; -1: of none
//   last row, column c  the expert whose matrices slot c has; -1: none
//
// Shared by the compiler and the runtime, so it needs the standard library only.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_EXPERTPLACEMENT_H
#define MESHWRIGHT_RUNTIME_EXPERTPLACEMENT_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace meshwright {

inline constexpr const char *expertPlacementInput = "expert_placement";

/// The sizes of a layer's table.
struct PlacementSizes {
  int64_t devices = 1, slots = 0; ///< along the axis; for copies, of all devices
  int64_t residues = 1;

  int64_t elements() const { return (residues + 1) * slots; }
};

/// Which experts of a layer have copies on which devices, and what each device computes then.
struct ExpertPlacement {
  std::vector<int32_t> table;
  std::vector<double> before, after; ///< the tokens of each device, without copies and with them
};

/// No expert has a copy.
inline std::vector<int32_t> withoutCopies(const PlacementSizes &sizes) {
  return std::vector<int32_t>(size_t(sizes.elements()), -1);
}

/// The placement for experts with these `loads`, their tokens. From the device with most tokens a part of an expert's goes to
/// the one with fewest that has a free slot, about as many as bring one of the two to the mean, until that helps no more.
/// (Experts are replicated by load, and packed onto devices by load, in the load balancer of DeepSeek-V3, too.)
inline ExpertPlacement placeExperts(const std::vector<double> &loads, const PlacementSizes &sizes) {
  const size_t devices = size_t(sizes.devices), own = loads.size() / devices, slots = size_t(sizes.slots) / devices;
  const int64_t residues = sizes.residues;
  struct Slot {
    int64_t expert = -1, residues = 0;
  };
  ExpertPlacement placement;
  std::vector<double> device(devices);
  for (size_t e = 0; e < loads.size(); ++e)
    device[e / own] += loads[e];
  placement.before = device;
  const double mean = std::accumulate(device.begin(), device.end(), 0.0) / double(devices);
  std::vector<int64_t> left(loads.size(), residues); // of an expert, on its own device
  std::vector<std::vector<Slot>> copies(devices, std::vector<Slot>(slots));

  // Moves tokens from the fullest device to `to`, if that helps.
  auto moveTo = [&](size_t from, size_t to) {
    Slot *best = nullptr;
    Slot what;
    double moved = 0, least = device[from]; // how full the fuller of the two is then
    for (size_t e = from * own; e < (from + 1) * own; ++e) {
      auto known = std::find_if(copies[to].begin(), copies[to].end(), [&](const Slot &slot) { return slot.expert == int64_t(e); });
      auto slot = known != copies[to].end()
                      ? known
                      : std::find_if(copies[to].begin(), copies[to].end(), [](const Slot &slot) { return slot.expert < 0; });
      double each = loads[e] / double(residues);
      if (slot == copies[to].end() || left[e] == 0 || !(each > 0))
        continue;
      double wanted = std::min(device[from] - mean, mean - device[to]) / each;
      int64_t count = std::llround(std::min(std::max(wanted, 1.0), double(left[e])));
      double tokens = double(count) * each, fuller = std::max(device[from] - tokens, device[to] + tokens);
      if (!(fuller < least))
        continue;
      moved = tokens;
      least = fuller;
      best = &*slot;
      what = {int64_t(e), count};
    }
    if (!best)
      return false;
    best->expert = what.expert;
    best->residues += what.residues;
    left[size_t(what.expert)] -= what.residues;
    device[from] -= moved;
    device[to] += moved;
    return true;
  };
  for (bool helped = true; helped;) {
    helped = false;
    size_t from = size_t(std::max_element(device.begin(), device.end()) - device.begin());
    std::vector<size_t> order(devices);
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return device[a] < device[b]; });
    for (size_t to : order)
      if (!helped && to != from)
        helped = moveTo(from, to);
  }

  placement.after = device;
  placement.table = withoutCopies(sizes);
  std::vector<int64_t> next(loads.size(), 0); // the first residue that is not given away yet
  for (size_t d = 0; d < devices; ++d)
    for (size_t s = 0; s < slots; ++s) {
      const Slot &slot = copies[d][s];
      if (slot.expert < 0)
        continue;
      size_t column = d * slots + s;
      int64_t &first = next[size_t(slot.expert)];
      for (int64_t r = first; r < first + slot.residues; ++r)
        placement.table[size_t(r * sizes.slots) + column] = int32_t(slot.expert);
      first += slot.residues;
      placement.table[size_t(residues * sizes.slots) + column] = int32_t(slot.expert);
    }
  return placement;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_EXPERTPLACEMENT_H
