// SPDX-License-Identifier: Apache-2.0
//===- Utf8.cpp - Recognition of UTF-8 ------------------------------------===//
#include "bmodel/utf8.h"

#include <cstdint>

size_t bmodel::utf8SequenceAt(const char *text) {
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return uint8_t(text[i]) >= low && uint8_t(text[i]) <= high;
  };
  const uint8_t first = uint8_t(text[0]);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xE0) {
    return first >= 0xC2 && follows(1) ? 2 : 0;
  }
  if (first < 0xF0) {
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  }
  const bool isWhole =
      first <= 0xF4 && follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3);
  return isWhole ? 4 : 0;
}

void bmodel::replaceOtherThanUtf8(char *text) {
  while (*text) {
    if (const size_t step = utf8SequenceAt(text)) {
      text += step;
    } else {
      *text++ = '?';
    }
  }
}
