// SPDX-License-Identifier: Apache-2.0
//===- Sizes.h - Sizes of a stage that are known at run time --------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_SIZES_H
#define TESSERA_BMRUNTIME_SRC_CORE_SIZES_H

#include "Memory.h"
#include "StageProgram.h"
#include "Status.h"

#include <cstdint>

namespace bmrt::core {

/// One shape for each input; null for an unknown shape.
struct InputShapes {
  const int64_t *const *dims;
  const uint32_t *ranks;
};

/// Checks that input |input| of |stage| accepts |shape|; otherwise the status states what it accepts.
bmrt_code_t checkInputShape(const bmodel::StageDef &stage, const bmodel::TensorDef &input, const int64_t *shape,
                            uint32_t rank, bmrt_status_t *status);

/// Checks all inputs with known shapes; dims with the same symbol must be equal.
bmrt_code_t checkInputShapes(const bmodel::StageDef &stage, const InputShapes &shapes, bmrt_status_t *status);

/// Determines how each dim of |program| gets its value (StageProgram::dimKinds).
bmrt_code_t classifyDims(StageProgram &program, bmrt_status_t *status);

/// Returns true if |value| is in the range of |slot| and a multiple of its divisor.
bool isInRange(const bmodel::DimSlotDef &slot, int64_t value);
/// Reports that the dim |slot| would have the value |value|, which is not in its range.
bmrt_code_t failOutOfRange(const bmodel::DimSlotDef &slot, int64_t value, bmrt_status_t *status);

/// The values of a stage's dim slots, and the bytes of its tensors at these values. Remembers the last few vectors of
/// sizes that passed all checks, so that returning to one of them costs nothing.
class Sizes {
public:
  bmrt_code_t create(const StageProgram &newProgram, bmrt_status_t *status);

  /// Sets the shapes of all inputs that are known in |shapes|, or none of them if it fails. The other inputs keep their
  /// dims. Forgets the dims that steps have set. |changed| becomes true if a size of an input differs from before.
  bmrt_code_t set(const InputShapes &shapes, bool &changed, bmrt_status_t *status);

  /// Returns the values by slot, -1 for unknown values; null if the stage has no dim slots.
  const int64_t *dims() const { return current ? current->dims.data() : nullptr; }
  /// Sets dim |slot| to |value| for a step, and everything that follows from it.
  bmrt_code_t setByStep(uint32_t slot, int64_t value, bmrt_status_t *status);
  /// Returns the bytes that memory of the caller for tensor |slot| must have: the largest size if steps set dims of it.
  uint64_t boundBytesOf(uint32_t slot) const;
  /// Returns the stored bytes of all tensors by slot; the stage must have dim slots.
  const uint64_t *bytes() const { return current->bytes.data(); }
  /// Returns the stored bytes of tensor |slot|; the largest possible size while a dim is unknown, or if a step sets it.
  uint64_t bytesOf(uint32_t slot) const {
    return current ? current->bytes[slot] : program->def->tensors()->Get(slot)->bytes();
  }
  /// Fails unless the shapes of all inputs are known. Forgets the dims that steps have set. |changed| becomes true if
  /// the lengths of states have changed since the last call of set().
  bmrt_code_t beginRun(bool &changed, bmrt_status_t *status);
  /// Gives states the lengths that they have after the current run, which succeeded.
  void endRun();

  /// Returns the length of the states that dim slot |slot| counts, and the largest that it may have had since
  /// resetLengths().
  int64_t lengthOf(uint32_t slot) const { return lengths[slot]; }
  int64_t longestOf(uint32_t slot) const { return longest[slot]; }
  void setLength(uint32_t slot, int64_t length);
  void resetLengths();

private:
  struct Vector {
    Array<int64_t> dims;
    Array<uint64_t> bytes; ///< by tensor
    uint64_t lastUse = 0;
    bool isValid = false;
  };

  bmrt_code_t findStepTensors(bmrt_status_t *status);
  Vector &findOldest();
  Vector *findSame(const Vector &wanted);
  void bind(Vector &vector, const InputShapes &shapes) const;
  bmrt_code_t complete(Vector &vector, const InputShapes &shapes, bmrt_status_t *status) const;
  bmrt_code_t derive(Vector &vector, uint32_t first, bmrt_status_t *status) const;
  bmrt_code_t compareDerived(const Vector &vector, const InputShapes &shapes, bmrt_status_t *status) const;
  bmrt_code_t measureTensors(Vector &vector, bmrt_status_t *status) const;
  bmrt_code_t checkKnown(const Vector &vector, bmrt_status_t *status) const;
  void forgetStepDims(Vector &vector) const;
  bmrt_code_t failDerived(const Vector &vector, uint32_t slot, int64_t value, bmrt_status_t *status) const;
  bmrt_code_t updateLengths(bool &changed, bmrt_status_t *status);

  static constexpr uint32_t kRemembered = 8;
  const StageProgram *program = nullptr;
  Array<Vector> vectors;
  Vector *current = nullptr; ///< null if the stage has no dim slots
  uint64_t uses = 0;
  Array<uint32_t> stepTensors;     ///< tensors with dims of steps, and the views of such tensors
  Array<int64_t> lengths, longest; ///< by dim slot, for dims that are lengths of states
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_SIZES_H
