// SPDX-License-Identifier: Apache-2.0
//===- DimsFuzzer.cpp - libFuzzer target: expressions and contracts -------===//
//
// The first byte decides whether the rest describes a contract note or an expression. Parts of an accepted contract
// must lie inside the note. If an expression passes the checks of the loader, its value must be defined for all
// parameters in their ranges, and lie in the range that the loader computes.
//
//===----------------------------------------------------------------------===//
#include "../src/core/KernelContract.h"

#include <cstdlib>
#include <memory>
#include <vector>

using namespace bmodel;
using bmrt::core::KernelContract;

namespace {

/// Writes a consistent head for a note of |size| bytes, so that the fuzzer reaches the expressions.
void completeHead(unsigned char *note, size_t size) {
  bm_kernel_contract head;
  if (size < sizeof(head)) {
    return;
  }
  memcpy(&head, note, sizeof(head));
  head.version = head.version % 8 ? BM_CONTRACT_VERSION_DIMS : head.version;
  head.arg_count %= 4;
  head.symbol_bytes = head.symbol_bytes % 8 ? 1 : head.symbol_bytes;
  memcpy(note, &head, sizeof(head));
}

void checkExpression(const DimExpression &expression, const std::vector<DimRange> &ranges) {
  if (expression.size() == 0 || findFault(expression, ranges.size())) {
    return;
  }
  auto rangeOf = [](const void *all, uint32_t slot) {
    return (*static_cast<const std::vector<DimRange> *>(all))[slot];
  };
  DimRange range;
  const bool isBounded = findRange(expression, rangeOf, &ranges, range);
  std::vector<int64_t> values(ranges.size());
  for (uint32_t corner = 0; corner < 8; ++corner) {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t width = uint64_t(ranges[i].max) - uint64_t(ranges[i].min);
      const uint64_t offset = (corner >> i % 3) & 1 ? width : width / 3 * (corner % 2);
      values[i] = int64_t(uint64_t(ranges[i].min) + offset);
    }
    int64_t value = 0;
    const bool isDefined = evaluate(expression, values.data(), value);
    if (isBounded && (!isDefined || value < range.min || value > range.max)) {
      abort();
    }
    if (findUnknownSlot(expression, values.data()) >= int64_t(values.size())) {
      abort();
    }
  }
}

void readNote(const uint8_t *data, size_t size) {
  const std::unique_ptr<unsigned char[]> note(new unsigned char[size]); // ends with the note, for the sanitizer
  if (size > 0) {
    memcpy(note.get(), data, size);
  }
  completeHead(note.get(), size);
  KernelContract contract;
  if (!contract.read(note.get(), size)) {
    return;
  }
  (void)strlen(contract.symbol);
  std::vector<DimRange> ranges;
  for (uint32_t i = 0; i < contract.paramCount; ++i) {
    const bm_kernel_param param = contract.param(i);
    ranges.push_back({param.min, param.max});
    if (param.min > param.max) {
      return;
    }
  }
  for (uint32_t i = 0; i < contract.head.arg_count; ++i) {
    (void)contract.alignment(i);
  }
  for (uint32_t i = 0; contract.takesDims() && i <= contract.head.arg_count; ++i) {
    checkExpression(contract.expression(i), ranges);
  }
}

/// Three bytes for the minimum and the width of each of two ranges, and three for each term.
void readExpression(const uint8_t *data, size_t size) {
  auto number = [&](size_t at) { return int64_t(uint64_t(int8_t(data[at])) << data[at + 1] % 64); };
  std::vector<DimRange> ranges;
  for (; ranges.size() < 2 && size >= 3; data += 3, size -= 3) {
    const int64_t least = number(0);
    ranges.push_back({least, least > INT64_MAX - data[2] ? least : least + data[2]});
  }
  std::vector<DimTerm> terms;
  for (; size >= 3; data += 3, size -= 3) {
    const DimOp op = DimOp(data[2] % 11);
    terms.emplace_back(op == DimOp::Slot ? data[0] % 3 : number(0), op);
  }
  checkExpression(DimExpression(terms.data(), uint32_t(terms.size())), ranges);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0) {
    (data[0] % 2 ? readNote : readExpression)(data + 1, size - 1);
  }
  return 0;
}
