//===- Palette.h - the colours of pictures ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_PALETTE_H
#define MESHWRIGHT_LIB_REPORT_PALETTE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::report {

/// The style of SVG pictures, with classes for what they show. The colours are those that
/// Okabe and Ito (2008) found people with any colour vision can tell apart; text, grey and
/// lines follow the reader's choice of light or dark.
inline constexpr llvm::StringLiteral pictureStyle =
    R"(text{fill:#1f2328}
.idle{fill:#e4e6e9}
.barrier{stroke:#1f2328;stroke-width:1.5;stroke-dasharray:4 3}
.axis{stroke:#59636e;stroke-width:1;fill:none}
.f,.parameter{fill:#0072b2}
.b,.optimizer{fill:#d55e00}
.w,.activation{fill:#009e73}
.u,.gradient{fill:#cc79a7}
.temporary{fill:#e69f00}
.workspace{fill:#56b4e9}
.bar{fill:#0072b2}
.other{fill:#8c959f}
.f,.b,.w{stroke:#fff;stroke-width:.5}
.later{fill-opacity:.65}
.on{fill:#fff;text-anchor:middle}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.idle{fill:#2d333b}
.barrier{stroke:#e6edf3}
.axis{stroke:#9198a1}
.f,.b,.w{stroke:#0d1117}
}
)";

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_PALETTE_H
