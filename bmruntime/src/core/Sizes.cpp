// SPDX-License-Identifier: Apache-2.0
//===- Sizes.cpp - Sizes of a stage that are known at run time ------------===//
#include "Sizes.h"

#include "Count.h"
#include "SizeCheck.h"
#include "TensorInfo.h"
#include "bmodel/dim_terms.h"
#include "bmrt/bmrt.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

bool bmrt::core::isInRange(const DimSlotDef &slot, int64_t value) {
  return value >= slot.min() && value <= slot.max() && value % slot.divisor() == 0;
}

/// Returns true if dim slot |slot| is the length of states after a run. Exceeding their capacity is reported as such.
static bool isLengthAfterRun(const StageDef &stage, int32_t slot) {
  for (uint32_t i = 0; i < count(stage.dims()); ++i) {
    if (stage.dims()->Get(i)->next() == slot) {
      return true;
    }
  }
  return false;
}

bmrt_code_t bmrt::core::checkInputShape(const StageDef &stage, const TensorDef &input, const int64_t *shape,
                                        uint32_t rank, bmrt_status_t *status) {
  const char *name = input.name()->c_str();
  const uint32_t expectedRank = count(input.shape());
  if (rank != expectedRank || rank > BMRT_MAX_RANK) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "input '%.100s' has rank %" PRIu32 ", the given shape has rank %" PRIu32,
                     name, expectedRank, rank);
  }
  for (uint32_t i = 0; i < rank; ++i) {
    const Dim &dim = *input.shape()->Get(i);
    if (dim.slot() < 0) {
      if (shape[i] != dim.value()) {
        return BMRT_FAIL(status, INVALID_ARGUMENT,
                         "dimension %" PRIu32 " of input '%.100s' is %" PRId64 ", not %" PRId64, i, name, dim.value(),
                         shape[i]);
      }
      continue;
    }
    const DimSlotDef &slot = *stage.dims()->Get(uint32_t(dim.slot()));
    if ((!isInRange(slot, shape[i]) || shape[i] > dim.value()) && !isLengthAfterRun(stage, dim.slot())) {
      return BMRT_FAIL(status, INVALID_ARGUMENT,
                       "dimension %" PRIu32 " ('%.60s') of input '%.100s' is %" PRId64
                       ", allowed are multiples of %" PRId64 " from %" PRId64 " to %" PRId64,
                       i, slot.name()->c_str(), name, shape[i], slot.divisor(), slot.min(),
                       slot.max() < dim.value() ? slot.max() : dim.value());
    }
  }
  return BMRT_OK;
}

/// Checks that dim |at| of |input| equals the size of the same symbol in earlier inputs.
static bmrt_code_t checkSymbol(const StageDef &stage, const InputShapes &shapes, uint32_t input, uint32_t at,
                               bmrt_status_t *status) {
  const TensorDef &def = *stage.tensors()->Get(stage.inputs()->Get(input));
  const int32_t slot = def.shape()->Get(at)->slot();
  for (uint32_t i = 0; slot >= 0 && i <= input; ++i) {
    const TensorDef &other = *stage.tensors()->Get(stage.inputs()->Get(i));
    for (uint32_t k = 0; shapes.dims[i] && k < count(other.shape()); ++k) {
      if (other.shape()->Get(k)->slot() == slot && shapes.dims[i][k] != shapes.dims[input][at]) {
        return BMRT_FAIL(status, INVALID_ARGUMENT,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' is %" PRId64
                         ", that of input '%.100s' is %" PRId64,
                         at, stage.dims()->Get(uint32_t(slot))->name()->c_str(), def.name()->c_str(),
                         shapes.dims[input][at], other.name()->c_str(), shapes.dims[i][k]);
      }
    }
  }
  return BMRT_OK;
}

bmrt_code_t bmrt::core::checkInputShapes(const StageDef &stage, const InputShapes &shapes, bmrt_status_t *status) {
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    if (shapes.dims[i]) {
      const TensorDef &input = *stage.tensors()->Get(stage.inputs()->Get(i));
      BMRT_RETURN_IF_ERROR(checkInputShape(stage, input, shapes.dims[i], shapes.ranks[i], status));
      for (uint32_t k = 0; k < shapes.ranks[i]; ++k) {
        BMRT_RETURN_IF_ERROR(checkSymbol(stage, shapes, i, k, status));
      }
    }
  }
  return BMRT_OK;
}

bmrt_code_t bmrt::core::failOutOfRange(const DimSlotDef &slot, int64_t value, bmrt_status_t *status) {
  return BMRT_FAIL(status, INVALID_ARGUMENT,
                   "dimension '%.60s' of the net becomes %" PRId64 ", allowed are multiples of %" PRId64
                   " from %" PRId64 " to %" PRId64 ": give other inputs",
                   slot.name()->c_str(), value, slot.divisor(), slot.min(), slot.max());
}

bmrt_code_t bmrt::core::classifyDims(StageProgram &program, bmrt_status_t *status) {
  const StageDef &stage = *program.def;
  Array<DimKind> &kinds = program.dimKinds;
  if (!kinds.allocate(count(stage.dims()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " dims", count(stage.dims()));
  }
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    const auto *shape = stage.tensors()->Get(stage.inputs()->Get(i))->shape();
    for (uint32_t k = 0; k < count(shape); ++k) {
      if (shape->Get(k)->slot() >= 0) {
        kinds[size_t(shape->Get(k)->slot())] = DimKind::Bound;
      }
    }
  }
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    const DimSlotDef &slot = *stage.dims()->Get(i);
    const DimExpression terms(slot.terms());
    if (slot.next() >= 0) {
      kinds[i] = DimKind::Length;
    } else if (terms.size() > 0) {
      kinds[i] = DimKind::Derived;
      for (uint32_t k = 0; k < terms.size(); ++k) {
        const bool isKnown = terms[k].op() != DimOp::Slot || kinds[size_t(terms[k].value())] != DimKind::SetByStep;
        kinds[i] = isKnown ? kinds[i] : DimKind::SetByStep;
      }
    } else if (kinds[i] == DimKind::SetByStep && slot.min() == slot.max()) {
      kinds[i] = DimKind::Fixed;
    }
  }
  return BMRT_OK;
}

bmrt_code_t Sizes::create(const StageProgram &newProgram, bmrt_status_t *status) {
  program = &newProgram;
  if (program->dimKinds.size() == 0) {
    return BMRT_OK;
  }
  if (!vectors.allocate(kRemembered) || !lengths.allocate(program->dimKinds.size()) ||
      !longest.allocate(program->dimKinds.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the sizes of a stage");
  }
  BMRT_RETURN_IF_ERROR(findStepTensors(status));
  Array<const int64_t *> shapes;
  bool changed = false;
  return shapes.allocate(count(program->def->inputs()))
             ? set({shapes.data(), nullptr}, changed, status)
             : BMRT_FAIL(status, NO_MEMORY, "no memory for the sizes of a stage");
}

bmrt_code_t Sizes::findStepTensors(bmrt_status_t *status) {
  const auto &tensors = *program->def->tensors();
  auto isOne = [&](const TensorDef &tensor) {
    return usesStepDims(*program, tensor) ||
           (tensor.view_of() >= 0 && usesStepDims(*program, *tensors.Get(uint32_t(tensor.view_of()))));
  };
  uint32_t found = 0;
  for (const TensorDef *tensor : tensors) {
    found += isOne(*tensor);
  }
  if (!stepTensors.allocate(found)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the sizes of a stage");
  }
  for (uint32_t i = tensors.size(); i-- > 0;) {
    if (isOne(*tensors.Get(i))) {
      stepTensors[--found] = i;
    }
  }
  return BMRT_OK;
}

bmrt_code_t Sizes::set(const InputShapes &shapes, bool &changed, bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(checkInputShapes(*program->def, shapes, status));
  changed = false;
  if (vectors.size() == 0) {
    return BMRT_OK;
  }
  Vector &candidate = findOldest();
  if (candidate.dims.size() == 0 && (!candidate.dims.allocate(program->dimKinds.size()) ||
                                     !candidate.bytes.allocate(count(program->def->tensors())))) {
    candidate.dims.clear();
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the sizes of a stage");
  }
  candidate.isValid = false;
  bind(candidate, shapes);
  Vector *wanted = findSame(candidate);
  if (!wanted) {
    BMRT_RETURN_IF_ERROR(complete(candidate, shapes, status));
    candidate.isValid = true;
    wanted = &candidate;
  } else {
    BMRT_RETURN_IF_ERROR(compareDerived(*wanted, shapes, status));
  }
  wanted->lastUse = ++uses;
  changed = wanted != current;
  forgetStepDims(*wanted);
  current = wanted;
  return BMRT_OK;
}

/// Returns the least recently used vector, which is never the current one.
Sizes::Vector &Sizes::findOldest() {
  Vector *oldest = nullptr;
  for (Vector &vector : vectors) {
    if (&vector != current && (!oldest || vector.lastUse < oldest->lastUse)) {
      oldest = &vector;
    }
  }
  return *oldest;
}

/// Returns the remembered vector with the same dims of inputs and lengths of states, or null.
Sizes::Vector *Sizes::findSame(const Vector &wanted) {
  for (Vector &vector : vectors) {
    bool isSame = vector.isValid;
    for (uint32_t i = 0; isSame && i < wanted.dims.size(); ++i) {
      const DimKind kind = program->dimKinds[i];
      isSame = (kind != DimKind::Bound && kind != DimKind::Length) || vector.dims[i] == wanted.dims[i];
    }
    if (isSame) {
      return &vector;
    }
  }
  return nullptr;
}

/// Sets the lengths of states and the dims that inputs bind: those of |shapes|, and the current values of the others.
void Sizes::bind(Vector &vector, const InputShapes &shapes) const {
  const StageDef &stage = *program->def;
  for (uint32_t i = 0; i < vector.dims.size(); ++i) {
    const DimSlotDef &slot = *stage.dims()->Get(i);
    const DimKind kind = program->dimKinds[i];
    const bool isConstant = kind == DimKind::Fixed || (kind == DimKind::Bound && slot.min() == slot.max());
    vector.dims[i] = isConstant                          ? slot.min()
                     : kind == DimKind::Length           ? lengths[i]
                     : current && kind == DimKind::Bound ? current->dims[i]
                                                         : -1;
  }
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    const TensorDef &input = *stage.tensors()->Get(stage.inputs()->Get(i));
    for (uint32_t k = 0; shapes.dims[i] && k < count(input.shape()); ++k) {
      const int32_t slot = input.shape()->Get(k)->slot();
      if (slot >= 0 && program->dimKinds[size_t(slot)] == DimKind::Bound) {
        vector.dims[size_t(slot)] = shapes.dims[i][k];
      }
    }
  }
}

/// Computes everything that follows from the dims of inputs, and checks it.
bmrt_code_t Sizes::complete(Vector &vector, const InputShapes &shapes, bmrt_status_t *status) const {
  BMRT_RETURN_IF_ERROR(derive(vector, 0, status));
  BMRT_RETURN_IF_ERROR(compareDerived(vector, shapes, status));
  BMRT_RETURN_IF_ERROR(measureTensors(vector, status));
  return checkKnown(vector, nullptr) == BMRT_OK ? checkSizes(*program, vector.dims.data(), vector.bytes.data(), status)
                                                : BMRT_OK;
}

/// Computes the derived dims from slot |first| on whose terms are known.
bmrt_code_t Sizes::derive(Vector &vector, uint32_t first, bmrt_status_t *status) const {
  for (uint32_t i = first; i < vector.dims.size(); ++i) {
    const DimSlotDef &slot = *program->def->dims()->Get(i);
    const DimExpression terms(slot.terms());
    if (terms.size() == 0 || findUnknownSlot(terms, vector.dims.data()) >= 0) {
      continue;
    }
    int64_t value = -1;
    const bool isValid = evaluate(terms, vector.dims.data(), value) && isInRange(slot, value);
    if (!isValid && program->dimKinds[i] != DimKind::SetByStep) {
      return failDerived(vector, i, value, status);
    }
    vector.dims[i] = isValid ? value : -1; // a loop may set the other dims of the expression again before its use
  }
  return BMRT_OK;
}

/// Reports that derived dim |slot| would have the value |value|, which is not in its range.
bmrt_code_t Sizes::failDerived(const Vector &vector, uint32_t slot, int64_t value, bmrt_status_t *status) const {
  const StageDef &stage = *program->def;
  for (uint32_t i = 0; i < count(stage.tensors()); ++i) {
    const TensorDef &state = *stage.tensors()->Get(i);
    if (state.length() < 0 || stage.dims()->Get(uint32_t(state.length()))->next() != int64_t(slot)) {
      continue;
    }
    const int64_t length = vector.dims[size_t(state.length())], capacity = stage.dims()->Get(slot)->max();
    if (value > capacity) {
      return BMRT_FAIL(status, INVALID_ARGUMENT,
                       "state '%.100s' holds %" PRId64 " of at most %" PRId64 " indices, and %" PRId64
                       " more do not fit: reset or shorten the states, or give smaller inputs",
                       state.name()->c_str(), length, capacity, value - length);
    }
  }
  return failOutOfRange(*stage.dims()->Get(slot), value, status);
}

/// Compares the given shapes with the dims that follow from other inputs.
bmrt_code_t Sizes::compareDerived(const Vector &vector, const InputShapes &shapes, bmrt_status_t *status) const {
  const StageDef &stage = *program->def;
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    const TensorDef &input = *stage.tensors()->Get(stage.inputs()->Get(i));
    for (uint32_t k = 0; shapes.dims[i] && k < count(input.shape()); ++k) {
      const int32_t slot = input.shape()->Get(k)->slot();
      const int64_t value = slot < 0 ? shapes.dims[i][k] : vector.dims[size_t(slot)];
      if (value < 0) {
        return BMRT_FAIL(status, FAILED_PRECONDITION,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' follows from the shapes of other inputs, "
                         "which are not known: set all shapes at once (bmrt_context_set_input_shapes)",
                         k, stage.dims()->Get(uint32_t(slot))->name()->c_str(), input.name()->c_str());
      }
      if (value != shapes.dims[i][k]) {
        return BMRT_FAIL(status, INVALID_ARGUMENT,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' is %" PRId64
                         ", the shapes of the other inputs require %" PRId64
                         " (bmrt_context_set_input_shapes sets all shapes at once)",
                         k, stage.dims()->Get(uint32_t(slot))->name()->c_str(), input.name()->c_str(),
                         shapes.dims[i][k], value);
      }
    }
  }
  return BMRT_OK;
}

/// Computes the bytes of all tensors. The size of a tensor with a dim that a step sets is its largest size.
bmrt_code_t Sizes::measureTensors(Vector &vector, bmrt_status_t *status) const {
  uint32_t largest = 0;
  for (uint32_t i = 0; i < vector.bytes.size(); ++i) {
    vector.bytes[i] = currentBytes(*program->def->tensors()->Get(i), vector.dims.data());
    largest = vector.bytes[i] > vector.bytes[largest] ? i : largest;
  }
  return vector.bytes.size() == 0 || !exceedsMachine(vector.bytes[largest]) || checkKnown(vector, nullptr) != BMRT_OK
             ? BMRT_OK
             : BMRT_FAIL(status, NO_MEMORY,
                         "tensor '%.100s' takes %" PRIu64
                         " bytes at these sizes, which is more than this machine has: give smaller inputs",
                         program->def->tensors()->Get(largest)->name()->c_str(), vector.bytes[largest]);
}

/// Checks that all dims of inputs are known.
bmrt_code_t Sizes::checkKnown(const Vector &vector, bmrt_status_t *status) const {
  const StageDef &stage = *program->def;
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    const TensorDef &input = *stage.tensors()->Get(stage.inputs()->Get(i));
    for (uint32_t k = 0; k < count(input.shape()); ++k) {
      const int32_t slot = input.shape()->Get(k)->slot();
      if (slot >= 0 && vector.dims[size_t(slot)] < 0) {
        return BMRT_FAIL(status, FAILED_PRECONDITION,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' is not known: call "
                         "bmrt_context_set_input_shape first",
                         k, stage.dims()->Get(uint32_t(slot))->name()->c_str(), input.name()->c_str());
      }
    }
  }
  return BMRT_OK;
}

bmrt_code_t Sizes::beginRun(bool &changed, bmrt_status_t *status) {
  changed = false;
  if (!current) {
    return BMRT_OK;
  }
  BMRT_RETURN_IF_ERROR(updateLengths(changed, status));
  forgetStepDims(*current);
  BMRT_RETURN_IF_ERROR(checkKnown(*current, status));
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    const int32_t next = program->def->dims()->Get(i)->next();
    longest[i] = next >= 0 && current->dims[size_t(next)] > longest[i] ? current->dims[size_t(next)] : longest[i];
  }
  return BMRT_OK;
}

/// Adapts the sizes to the present lengths of states. Fails without a change if this changes the shape of an input,
/// because its buffer has the old size.
bmrt_code_t Sizes::updateLengths(bool &changed, bmrt_status_t *status) {
  const Vector *before = current;
  bool isCurrent = true;
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    isCurrent = isCurrent && (program->dimKinds[i] != DimKind::Length || before->dims[i] == lengths[i]);
  }
  if (isCurrent) {
    return BMRT_OK;
  }
  Array<const int64_t *> shapes;
  if (!shapes.allocate(count(program->def->inputs()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the sizes of a stage");
  }
  BMRT_RETURN_IF_ERROR(set({shapes.data(), nullptr}, changed, status));
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    const TensorDef &input = *program->def->tensors()->Get(program->def->inputs()->Get(i));
    for (uint32_t k = 0; k < count(input.shape()); ++k) {
      const int32_t slot = input.shape()->Get(k)->slot();
      if (slot >= 0 && current->dims[size_t(slot)] != before->dims[size_t(slot)]) {
        const int64_t size = current->dims[size_t(slot)];
        current = const_cast<Vector *>(before);
        return BMRT_FAIL(status, FAILED_PRECONDITION,
                         "dimension %" PRIu32 " of input '%.100s' is %" PRId64
                         " after the last run: call bmrt_context_set_input_shape first",
                         k, input.name()->c_str(), size);
      }
    }
  }
  return BMRT_OK;
}

void Sizes::endRun() {
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    const int32_t next = program->def->dims()->Get(i)->next();
    if (next >= 0 && current->dims[size_t(next)] >= 0) { // otherwise the step that sets it did not run
      lengths[i] = current->dims[size_t(next)];
    }
  }
}

void Sizes::setLength(uint32_t slot, int64_t length) {
  lengths[slot] = length;
  longest[slot] = length > longest[slot] ? length : longest[slot];
}

void Sizes::resetLengths() {
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = longest[i] = 0;
  }
}

void Sizes::forgetStepDims(Vector &vector) const {
  for (uint32_t i = 0; i < vector.dims.size(); ++i) {
    if (program->dimKinds[i] == DimKind::SetByStep) {
      vector.dims[i] = -1;
    }
  }
  for (uint32_t slot : stepTensors) {
    vector.bytes[slot] = currentBytes(*program->def->tensors()->Get(slot), vector.dims.data());
  }
}

bmrt_code_t Sizes::setByStep(uint32_t slot, int64_t value, bmrt_status_t *status) {
  const DimSlotDef &def = *program->def->dims()->Get(slot);
  if (!isInRange(def, value)) {
    return failOutOfRange(def, value, status);
  }
  current->dims[slot] = value;
  BMRT_RETURN_IF_ERROR(derive(*current, slot + 1, status));
  for (uint32_t tensor : stepTensors) {
    current->bytes[tensor] = currentBytes(*program->def->tensors()->Get(tensor), current->dims.data());
  }
  for (uint32_t tensor : stepTensors) {
    const TensorDef &def = *program->def->tensors()->Get(tensor);
    // A tensor with a size of a step has memory for the largest size, and branches may view it at different sizes.
    const bool isInLargest = def.view_of() < 0 || usesStepDims(*program, *program->def->tensors()->Get(def.view_of()));
    if (!isInLargest && isKnown(def, current->dims.data())) {
      BMRT_RETURN_IF_ERROR(checkView(*program, tensor, current->bytes.data(), status));
    }
  }
  return BMRT_OK;
}

uint64_t Sizes::boundBytesOf(uint32_t slot) const {
  const TensorDef &def = *program->def->tensors()->Get(slot);
  return current && usesStepDims(*program, def) ? def.bytes() : bytesOf(slot);
}
