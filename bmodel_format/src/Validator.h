// SPDX-License-Identifier: Apache-2.0
//===- Validator.h - Checks the rules between the fields of a model -------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_VALIDATOR_H
#define TESSERA_BMODEL_FORMAT_SRC_VALIDATOR_H

#include "bmodel/reader.h"

namespace bmodel {

template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// Returns true if elements of 8 bytes are aligned to 8. The verifier of flatbuffers checks only the alignment of a
/// vector's length field.
template <typename T>
bool isAligned(const flatbuffers::Vector<T> *vector) {
  return count(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

/// Returns true if [offset, offset + bytes) lies in [0, limit).
inline bool inRange(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return offset <= limit && bytes <= limit - offset;
}

/// Returns true if the size of the tensor depends on dim slots.
inline bool isSymbolic(const TensorDef &tensor) {
  for (uint32_t i = 0; i < count(tensor.shape()); ++i) {
    if (tensor.shape()->Get(i)->slot() >= 0) {
      return true;
    }
  }
  return false;
}

/// Checks one model. The methods of the main parts (tables, dims, tensors, steps) are in files of their own. Each
/// records the first error that it finds and returns false.
class Validator {
public:
  Validator(const ModelDef &model, Status &status) : model(model), status(status) {}

  bool validate(uint64_t tableEnd, uint64_t fileBytes);

private:
  bool segments(uint64_t tableEnd, uint64_t fileBytes);
  bool chips();
  bool stage(const StageDef &def);
  bool dims();
  bool derivedDim(const DimSlotDef &def, uint32_t slots);
  bool stateDim(const DimSlotDef &def);
  bool stateLength(const TensorDef &def);
  bool expression(const flatbuffers::Vector<const DimTerm *> *terms, uint32_t slots, const char *name);
  bool workspaces();
  bool stateSize();
  bool runBounds();
  bool tensor(const TensorDef &def);
  bool tensorSize(const TensorDef &def);
  bool tensorPlace(const TensorDef &def);
  bool tensorMemory(const TensorDef &def);
  bool tensorQuant(const TensorDef &def);
  bool interface();
  bool subnet(const SubnetDef &def);
  bool subnetChip(const SubnetDef &def);
  bool step(const SubnetDef &net, const StepDef &def);
  bool launch(const SubnetDef &net, const LaunchDef &def);
  bool customLaunch(const SubnetDef &net, const LaunchDef &def, const KernelDef &kernel);
  bool runStream(const SubnetDef &net, const StepDef &def);
  bool streamTensors(const SubnetDef &net, const StreamCall &call);
  bool streamsOwn(const SubnetDef &net, const TensorDef &tensor);
  bool shareBytes(const TensorDef &a, const TensorDef &b) const;
  bool loop(const LoopDef &def);
  bool settableDim(uint32_t index);
  bool evalDim(const EvalDimDef &def);
  bool dimElement(uint32_t slot, uint64_t index, const char *what);
  bool copy(const CopyDef &def);

  /// The following checks fail unless |index| is a tensor slot and, where they take a type or memory, has that type or
  /// is in that memory; |what| names the slot's purpose in the message.
  bool slot(int64_t index, const char *what);
  bool slotIn(int32_t memory, int64_t index, const char *what);
  bool scalarSlot(int64_t index, DType dtype, const char *what);
  bool writableSlot(int64_t index, const char *what);
  bool dimSlot(int64_t index, const char *what);
  bool callee(int64_t index, const char *what);
  const TensorDef &rootOf(const TensorDef &def) const {
    return def.view_of() < 0 ? def : *current->tensors()->Get(uint32_t(def.view_of()));
  }

  /// Writes "the host's memory" or "the memory of chip 'gpu'" to |buffer| and returns it.
  const char *memoryName(int32_t memory, char (&buffer)[80]) const;
  /// Returns true if |chip| is the index of a chip with its own memory.
  bool hasMemory(int64_t chip) const {
    return chip >= 0 && chip < int64_t(count(model.chips())) &&
           model.chips()->Get(uint32_t(chip))->memory() == MemoryKind::Device;
  }

  /// Records an error with the position in front, e.g. "net 'm' stage 0 tensor 'x': ", and returns false.
  [[gnu::format(printf, 3, 4)]] bool failAt(int line, const char *format, ...);

  const ModelDef &model;
  Status &status;
  const NetDef *net = nullptr;
  const StageDef *current = nullptr;
  const char *tensorName = nullptr;
  uint32_t stageIndex = 0;
  int64_t subnetIndex = -1, stepIndex = -1;
};

} // namespace bmodel

#define FAIL(...) failAt(__LINE__, __VA_ARGS__)

#endif // TESSERA_BMODEL_FORMAT_SRC_VALIDATOR_H
