// SPDX-License-Identifier: Apache-2.0
//===- utf8.h - Recognition of UTF-8 --------------------------------------===//
#ifndef BMODEL_UTF8_H
#define BMODEL_UTF8_H

#include <cstddef>

namespace bmodel {

/// Returns the length in bytes of the UTF-8 sequence at |text|, or 0 if |text| does not begin with one (Unicode 15,
/// table 3-7: shortest forms only, no surrogates, nothing beyond U+10FFFF). Never reads past a terminating 0 byte.
size_t utf8SequenceAt(const char *text);

/// Replaces each byte of |text| that is not part of a UTF-8 sequence with '?'. Needed for names that a message
/// truncated, and for paths.
void replaceOtherThanUtf8(char *text);

} // namespace bmodel

#endif // BMODEL_UTF8_H
