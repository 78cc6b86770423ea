// SPDX-License-Identifier: Apache-2.0
//===- ValidateDims.cpp - The rules of dim slots and of growing states ----===//
#include "Validator.h"

#include "bmodel/dim_terms.h"

#include <cinttypes>

using namespace bmodel;

bool Validator::dims() {
  for (uint32_t i = 0; i < count(current->dims()); ++i) {
    const DimSlotDef &def = *current->dims()->Get(i);
    if (def.min() < 0 || def.divisor() < 1 || def.max() / def.divisor() * def.divisor() < def.min()) {
      return FAIL("dim '%.60s' ranges from %" PRId64 " to %" PRId64 " in steps of %" PRId64, def.name()->c_str(),
                  def.min(), def.max(), def.divisor());
    }
    if (def.likely() != -1 &&
        (def.likely() < def.min() || def.likely() > def.max() || def.likely() % def.divisor() != 0)) {
      return FAIL("the likely value %" PRId64 " of dim '%.60s' is not one of its values", def.likely(),
                  def.name()->c_str());
    }
    if (count(def.terms()) > 0 && !derivedDim(def, i)) {
      return false;
    }
    if (def.next() != -1 && !stateDim(def)) {
      return false;
    }
  }
  return true;
}

/// Checks a dim that the context keeps between runs, from 0 to the values of the derived slot `next`.
bool Validator::stateDim(const DimSlotDef &def) {
  if (def.next() < 0 || def.next() >= int64_t(count(current->dims()))) {
    return FAIL("after a run, dim '%.60s' becomes dim slot %" PRId32 " of %" PRIu32, def.name()->c_str(), def.next(),
                count(current->dims()));
  }
  const DimSlotDef &next = *current->dims()->Get(uint32_t(def.next()));
  return (count(def.terms()) == 0 && def.min() == 0 && def.divisor() == 1 && count(next.terms()) > 0 &&
          next.max() <= def.max()) ||
         FAIL("dim '%.60s' from %" PRId64 " to %" PRId64 " cannot become '%.60s' of at most %" PRId64 " after a run",
              def.name()->c_str(), def.min(), def.max(), next.name()->c_str(), next.max());
}

/// Checks the expression of a derived slot, which may refer only to the |slots| slots before it, so that there are no
/// cycles. Rejects expressions that overflow at a corner of the ranges of these slots.
bool Validator::derivedDim(const DimSlotDef &def, uint32_t slots) {
  if (!expression(def.terms(), slots, def.name()->c_str())) {
    return false;
  }
  auto rangeOf = [](const void *stage, uint32_t slot) {
    const DimSlotDef &operand = *static_cast<const StageDef *>(stage)->dims()->Get(slot);
    return DimRange{operand.min(), operand.max()};
  };
  DimRange range;
  if (!findRange(DimExpression(def.terms()), rangeOf, current, range)) {
    return FAIL("dim '%.60s' may overflow or divide by zero", def.name()->c_str());
  }
  return (range.min <= def.max() && range.max >= def.min()) ||
         FAIL("dim '%.60s' ranges from %" PRId64 " to %" PRId64 ", its expression only from %" PRId64 " to %" PRId64,
              def.name()->c_str(), def.min(), def.max(), range.min, range.max);
}

/// Checks the structure of the expression for dim |name|, whose terms may refer to slots below |slots|.
bool Validator::expression(const flatbuffers::Vector<const DimTerm *> *terms, uint32_t slots, const char *name) {
  if (!isAligned(terms)) {
    return FAIL("the expression of dim '%.60s' is misaligned", name);
  }
  const char *fault = findFault(DimExpression(terms), slots);
  return !fault || FAIL("the expression of dim '%.60s' %s", name, fault);
}

/// Checks a state that grows along one of its dims.
bool Validator::stateLength(const TensorDef &def) {
  const bool isState = def.role() == TensorRole::State && def.view_of() < 0 && def.chip() == kHostMemory &&
                       def.layout() == LayoutKind::RowMajor && def.initial() < 0;
  if (!isState || def.length() < 0 || def.length() >= int64_t(count(current->dims())) ||
      def.length_axis() >= count(def.shape())) {
    return FAIL("dim slot %" PRId32 " of %" PRIu32 " cannot be the length of its dim %u", def.length(),
                count(current->dims()), unsigned(def.length_axis()));
  }
  for (const Dim *dim : *def.shape()) {
    if (dim->slot() >= 0) {
      return FAIL("a state that grows has the dim slot %" PRId32, dim->slot());
    }
  }
  const DimSlotDef &length = *current->dims()->Get(uint32_t(def.length()));
  const int64_t capacity = def.shape()->Get(def.length_axis())->value();
  return (length.next() >= 0 && length.max() <= capacity && capacity > 0) ||
         FAIL("its dim %u of %" PRId64 " cannot hold the length '%.60s' of at most %" PRId64,
              unsigned(def.length_axis()), capacity, length.name()->c_str(), length.max());
}

bool Validator::dimSlot(int64_t index, const char *what) {
  return (index >= 0 && index < int64_t(count(current->dims()))) ||
         FAIL("%s is dim slot %" PRId64 " of %" PRIu32, what, index, count(current->dims()));
}

/// Checks that a step may set dim slot |index|.
bool Validator::settableDim(uint32_t index) {
  if (!dimSlot(index, "target")) {
    return false;
  }
  const DimSlotDef &target = *current->dims()->Get(index);
  if (count(target.terms()) > 0 || target.next() != -1) {
    return FAIL("a step sets dim '%.60s', which follows from other dims", target.name()->c_str());
  }
  // Dims of inputs are bound to the caller's buffers and must not change during a run.
  for (uint32_t i = 0; i < count(current->inputs()); ++i) {
    const TensorDef &input = *current->tensors()->Get(current->inputs()->Get(i));
    for (uint32_t d = 0; d < count(input.shape()); ++d) {
      if (input.shape()->Get(d)->slot() == int64_t(index)) {
        return FAIL("a step changes dimension %" PRIu32 " of input '%.60s'", d, input.name()->c_str());
      }
    }
  }
  return true;
}

bool Validator::evalDim(const EvalDimDef &def) {
  return settableDim(def.slot()) &&
         expression(def.terms(), count(current->dims()), current->dims()->Get(def.slot())->name()->c_str());
}

/// Checks the element of a tensor that a step reads as a dim, or to which it writes a dim.
bool Validator::dimElement(uint32_t slot, uint64_t index, const char *what) {
  if (!slotIn(kHostMemory, slot, what)) {
    return false;
  }
  const TensorDef &def = *current->tensors()->Get(slot);
  const uint64_t elements = def.bytes() / sizeof(int64_t);
  if (def.dtype() != DType::I64 || def.layout() != LayoutKind::RowMajor || isSymbolic(def)) {
    return FAIL("%s '%.60s' is not an I64 tensor of constant size", what, def.name()->c_str());
  }
  return index < elements ||
         FAIL("element %" PRIu64 " of %s '%.60s', which has %" PRIu64, index, what, def.name()->c_str(), elements);
}
