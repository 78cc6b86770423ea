//===- DimRanges.cpp - Parsing of --dims ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/DimRanges.h"

#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top {

namespace {

llvm::Error fail(StringRef entry, const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv("dims '{0}': {1}; write NAME=MIN..MAX, with a divisor "
                                               "NAME=MIN..MAX:DIVISOR, with a likely size NAME=MIN..MAX~LIKELY, one "
                                               "size NAME=SIZE, or auto for all open dims",
                                               entry, why.str()));
}

/// Parses a size that starts |text| and removes it. Returns false if there is none or it is too large.
bool takeSize(StringRef &text, int64_t &size) {
  return !text.consumeInteger(10, size) && size >= 0 && size <= int64_t(1) << 40;
}

llvm::Expected<DimRange> parseRange(StringRef entry, StringRef text) {
  DimRange range;
  bool isValid = takeSize(text, range.min);
  range.max = range.min;
  if (text.consume_front("..")) {
    isValid = isValid && takeSize(text, range.max);
  }
  if (text.consume_front(":")) {
    isValid = isValid && takeSize(text, range.divisor);
  }
  range.likely = range.max;
  if (text.consume_front("~")) {
    isValid = isValid && takeSize(text, range.likely);
  }
  if (!isValid || !text.empty()) {
    return fail(entry, "the range is not valid");
  }
  if (range.min > range.max) {
    return fail(entry, llvm::formatv("the range {0}..{1} is empty", range.min, range.max));
  }
  if (range.likely < range.min || range.likely > range.max) {
    return fail(entry, llvm::formatv("the likely size {0} is outside {1}..{2}", range.likely, range.min, range.max));
  }
  for (int64_t size : {range.min, range.max, range.likely}) {
    if (range.divisor < 1 || size % range.divisor != 0) {
      return fail(entry, llvm::formatv("the divisor {0} does not divide {1}", range.divisor, size));
    }
  }
  return range;
}

} // namespace

std::string DimRange::format() const {
  std::string text = std::to_string(min);
  text += min == max ? "" : ".." + std::to_string(max);
  text += divisor == 1 ? "" : ":" + std::to_string(divisor);
  return text + (likely == max ? "" : "~" + std::to_string(likely));
}

llvm::Expected<DimRanges> DimRanges::parse(StringRef text) {
  DimRanges ranges;
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',', -1, /*KeepEmpty=*/false);
  for (StringRef entry : entries) {
    entry = entry.trim();
    if (entry == "auto") {
      ranges.openAll = true;
      continue;
    }
    auto [name, value] = entry.rsplit('=');
    if (name.empty() || value.empty()) {
      return fail(entry, "it has no name or no range");
    }
    auto range = parseRange(entry, value);
    if (!range) {
      return range.takeError();
    }
    if (!ranges.byName.emplace(name.str(), *range).second) {
      return fail(entry, llvm::formatv("'{0}' is given twice", name));
    }
  }
  if (!ranges.isGiven()) {
    return fail(text, "it is empty");
  }
  return ranges;
}

} // namespace tessera::top
