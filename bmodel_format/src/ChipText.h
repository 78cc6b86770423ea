// SPDX-License-Identifier: Apache-2.0
//===- ChipText.h - Text of chip descriptions ------------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_CHIPTEXT_H
#define TESSERA_BMODEL_FORMAT_SRC_CHIPTEXT_H

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace bmodel {

/// Returns the parts of |text| between separators; an empty text is one empty part.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Returns a number as messages and fingerprints write it.
inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_CHIPTEXT_H
