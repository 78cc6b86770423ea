// SPDX-License-Identifier: Apache-2.0
//===- utf8.h - Which bytes are UTF-8 -------------------------------------===//
#ifndef BMODEL_UTF8_H
#define BMODEL_UTF8_H

#include <cstddef>

namespace bmodel {

/// Bytes of the UTF-8 sequence that begins at |text|, 0 = there is none (Unicode 15, table 3-7: the shortest forms
/// only, no surrogates, nothing beyond U+10FFFF). A byte of 0 ends the text, so that no sequence is read past it.
size_t utf8SequenceAt(const char *text);

/// Puts '?' for each byte of |text| that is part of no sequence: of a name that a message cut short, or of a path.
void replaceOtherThanUtf8(char *text);

} // namespace bmodel

#endif // BMODEL_UTF8_H
