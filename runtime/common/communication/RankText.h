//===- RankText.h - text that ranks tell each other -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RANKTEXT_H
#define MESHWRIGHT_RUNTIME_COMMON_RANKTEXT_H

#include "common/communication/RankGroup.h"

#include <string>
#include <vector>

namespace meshwright {

/// What member `root` says. Collective.
std::string broadcastText(RankGroup &world, std::string words, int root);

/// What each member says. Collective.
std::vector<std::string> gatherText(RankGroup &world, const std::string &words);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RANKTEXT_H
