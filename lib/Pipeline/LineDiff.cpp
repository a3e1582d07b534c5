//===- LineDiff.cpp - the lines that differ between two texts ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LineDiff.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::StringRef;

namespace meshwright {

using Lines = ArrayRef<StringRef>;

namespace {
class Differ {
public:
  std::vector<DiffLine> lines;

  void compare(Lines before, Lines after) {
    size_t start = 0, end = 0, most = std::min(before.size(), after.size());
    while (start < most && before[start] == after[start])
      ++start;
    while (end < most - start && before[before.size() - 1 - end] == after[after.size() - 1 - end])
      ++end;
    add(DiffLine::Kept, before.take_front(start));
    compareMiddle(before.slice(start, before.size() - start - end),
                  after.slice(start, after.size() - start - end));
    add(DiffLine::Kept, before.take_back(end));
  }

private:
  void add(DiffLine::Kind kind, Lines of) {
    for (StringRef line : of)
      lines.push_back({kind, line});
  }

  void compareMiddle(Lines before, Lines after) {
    std::vector<std::pair<size_t, size_t>> anchors = anchorsOf(before, after);
    if (anchors.empty()) {
      compareTable(before, after);
      return;
    }
    size_t i = 0, j = 0;
    for (auto [a, b] : anchors) {
      // Begins again: the lines around an anchor often agree.
      compare(before.slice(i, a - i), after.slice(j, b - j));
      add(DiffLine::Kept, before.slice(a, 1));
      i = a + 1;
      j = b + 1;
    }
    compare(before.drop_front(i), after.drop_front(j));
  }

  /// The longest sequence of lines that occur once in each text and in the same order.
  static std::vector<std::pair<size_t, size_t>> anchorsOf(Lines before, Lines after) {
    struct Place {
      unsigned inBefore = 0, inAfter = 0;
      size_t at = 0;
    };
    llvm::DenseMap<StringRef, Place> places;
    for (StringRef line : before)
      ++places[line].inBefore;
    for (auto [j, line] : llvm::enumerate(after)) {
      Place &place = places[line];
      ++place.inAfter;
      place.at = j;
    }
    // Patience sorting: each pile has the smallest end of a sequence of its length.
    struct Card {
      size_t i, j;
      int64_t previous;
    };
    std::vector<Card> cards;
    std::vector<size_t> piles;
    for (auto [i, line] : llvm::enumerate(before)) {
      const Place &place = places[line];
      if (place.inBefore != 1 || place.inAfter != 1)
        continue;
      auto pile = llvm::lower_bound(piles, place.at, [&](size_t card, size_t j) { return cards[card].j < j; });
      cards.push_back({i, place.at, pile == piles.begin() ? -1 : int64_t(*std::prev(pile))});
      if (pile == piles.end())
        piles.push_back(cards.size() - 1);
      else
        *pile = cards.size() - 1;
    }
    std::vector<std::pair<size_t, size_t>> anchors;
    for (int64_t card = piles.empty() ? -1 : int64_t(piles.back()); card >= 0; card = cards[card].previous)
      anchors.push_back({cards[card].i, cards[card].j});
    std::reverse(anchors.begin(), anchors.end());
    return anchors;
  }

  /// By the table of longest common subsequences, where it is small; else all of one replaces all of
  /// the other.
  void compareTable(Lines before, Lines after) {
    size_t rows = before.size(), columns = after.size();
    constexpr size_t largest = 1 << 22;
    if (rows == 0 || columns == 0 || rows > largest / columns) {
      add(DiffLine::Removed, before);
      add(DiffLine::Added, after);
      return;
    }
    std::vector<unsigned> table((rows + 1) * (columns + 1));
    auto at = [&](size_t i, size_t j) -> unsigned & { return table[i * (columns + 1) + j]; };
    for (size_t i = rows; i-- > 0;)
      for (size_t j = columns; j-- > 0;)
        at(i, j) = before[i] == after[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    size_t i = 0, j = 0;
    while (i < rows && j < columns)
      if (before[i] == after[j]) {
        add(DiffLine::Kept, before.slice(i, 1));
        ++i;
        ++j;
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        add(DiffLine::Removed, before.slice(i++, 1));
      } else {
        add(DiffLine::Added, after.slice(j++, 1));
      }
    add(DiffLine::Removed, before.drop_front(i));
    add(DiffLine::Added, after.drop_front(j));
  }
};
} // namespace

std::vector<DiffLine> diffLines(StringRef before, StringRef after) {
  auto split = [](StringRef text) {
    llvm::SmallVector<StringRef, 0> lines;
    text.rtrim('\n').split(lines, '\n');
    return lines;
  };
  auto first = split(before), second = split(after);
  Differ differ;
  differ.compare(first, second);
  return std::move(differ.lines);
}

} // namespace meshwright
