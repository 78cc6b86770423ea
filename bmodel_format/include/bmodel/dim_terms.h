// SPDX-License-Identifier: Apache-2.0
//===- dim_terms.h - Postfix expressions over dims ------------------------===//
//
// The reader, the runtime and the checks of kernel contracts share these functions. Nothing here allocates or throws.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_DIM_TERMS_H
#define BMODEL_DIM_TERMS_H

#include "bmodel/bmodel_generated.h"

#include <cstdint>
#include <cstring>

namespace bmodel {

/// Largest number of values that an expression may keep on its stack.
inline constexpr uint32_t kMaxExpressionDepth = 32;

/// All integers from min to max.
struct DimRange {
  int64_t min = 0, max = 0;
};

/// A postfix expression: |count| terms in the layout of DimTerm, of any alignment. Its slots are dim slots of a stage,
/// or parameters of a kernel contract.
class DimExpression {
public:
  DimExpression() = default;
  DimExpression(const void *terms, uint32_t count) : terms(static_cast<const unsigned char *>(terms)), count(count) {}
  explicit DimExpression(const flatbuffers::Vector<const DimTerm *> *terms)
      : terms(terms ? terms->Data() : nullptr), count(terms ? terms->size() : 0) {}

  uint32_t size() const { return count; }
  DimTerm operator[](uint32_t i) const {
    DimTerm term;
    memcpy(&term, terms + i * sizeof(term), sizeof(term));
    return term;
  }

private:
  const unsigned char *terms = nullptr;
  uint32_t count = 0;
};

/// Returns what is wrong with the structure of an expression over |slots| slots, or null. The functions below require
/// an expression without such a fault.
const char *findFault(const DimExpression &expression, uint64_t slots);

/// Returns the first slot of the expression whose entry in |values| is negative, i.e. unknown, or -1.
int64_t findUnknownSlot(const DimExpression &expression, const int64_t *values);

/// Computes the value of the expression for |values|, by slot. Returns false on overflow and division by 0.
bool evaluate(const DimExpression &expression, const int64_t *values, int64_t &result);

/// Sets |result| to a range that contains the value of the expression for all values of slots in their ranges, which
/// |rangeOf|(|context|, slot) returns. Returns false if a corner of these ranges overflows, or if a divisor may be 0.
bool findRange(const DimExpression &expression, DimRange (*rangeOf)(const void *context, uint32_t slot),
               const void *context, DimRange &result);

} // namespace bmodel

#endif // BMODEL_DIM_TERMS_H
