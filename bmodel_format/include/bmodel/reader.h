// SPDX-License-Identifier: Apache-2.0
//===- reader.h - Verified access to the bytes of a .bmodel ---------------===//
//
// libbmrt and model_tool share these functions. Nothing here allocates, throws or executes code. After a check has
// passed, everything that the schema points at may be used without further bounds checks.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_READER_H
#define BMODEL_READER_H

#include "bmodel/bmodel_generated.h"
#include "bmodel/file_header.h"
#include "bmodel/status.h"

#include <cstddef>
#include <cstdint>

namespace bmodel {

/// Limits of one run. The loader rejects a file if its calls need more steps (each loop body counted once), or if a
/// loop without a condition has a larger trip count.
inline constexpr uint64_t kMaxRunSteps = uint64_t(1) << 32;
inline constexpr int64_t kMaxTrips = int64_t(1) << 32;
inline constexpr uint32_t kMaxCallDepth = 64;

/// A verified model. It points into the caller's bytes, which must stay mapped and unchanged.
struct ModelView {
  const unsigned char *data = nullptr;
  uint64_t bytes = 0;
  const FileHeader *header = nullptr;
  const ModelDef *model = nullptr;

  const unsigned char *segment(uint32_t index) const { return data + model->segments()->Get(index)->offset(); }
};

/// Checks the header, the hash of the flatbuffer, its structure and meaning (validateModel), and that all bytes outside
/// of flatbuffer and segments are zero. Does not check the contents of segments, of which it reads only the first and
/// last pages. |data| must be 64-byte aligned.
bool openModel(const void *data, uint64_t bytes, ModelView &view, Status &status);

/// Checks the rules between the fields of a structurally sound flatbuffer: indices, ranges, overflow, alignment,
/// aliases, argument counts. |fileBytes| bounds the segments; |tableEnd| is the end of the flatbuffer. Messages name
/// the net, stage, subnet, step or tensor.
bool validateModel(const ModelDef &model, uint64_t tableEnd, uint64_t fileBytes, Status &status);

/// A command stream that a step runs: its position in the subnet's code, and the tensors it runs on.
struct StreamCall {
  uint64_t offset = 0, bytes = 0;
  const flatbuffers::Vector<uint32_t> *inputs = nullptr, *outputs = nullptr; ///< slots; may be null
  const flatbuffers::Vector<uint32_t> *dims = nullptr;                       ///< dim slots; may be null
};

/// Sets |call| to the stream that |step| runs; returns false if the step runs none.
inline bool findStreamCall(const StageDef &stage, const StepDef &step, StreamCall &call) {
  if (const RunStreamDef *run = step.op_as_RunStreamDef()) {
    call = {run->offset(), run->bytes(), stage.inputs(), stage.outputs(), nullptr};
    return true;
  }
  if (const RunStreamOnDef *run = step.op_as_RunStreamOnDef()) {
    call = {run->offset(), run->bytes(), run->inputs(), run->outputs(), run->dims()};
    return true;
  }
  return false;
}

/// The number of the host's memory. Other memories have the index of their chip in ModelDef.chips.
inline constexpr int32_t kHostMemory = -1;

/// Returns the memory that a tensor of |stage| is in: kHostMemory or an index into ModelDef.chips. |stage| must be
/// valid.
int32_t memoryOf(const StageDef &stage, const TensorDef &tensor);

/// Returns the memory that a workspace is in: kHostMemory or an index into ModelDef.chips.
int32_t memoryOf(const WorkspaceDef &workspace);

/// Returns the memory of the tensors that kernels and streams of |subnet| run on; kHostMemory for control subnets.
int32_t memoryOf(const ModelDef &model, const SubnetDef &subnet);

/// Returns the family whose back end runs the code of |subnet|: ChipDef.family, or the family that an older SubnetKind
/// implies. Returns "" if the chip has no family, and null for control subnets, which have no code.
const char *familyOf(const ModelDef &model, const SubnetDef &subnet);

/// Returns the workspace that is reserved for streams of |subnet|, or null.
const WorkspaceDef *streamWorkspace(const StageDef &stage, const SubnetDef &subnet);

/// Returns the number of hash chunks of a segment.
uint64_t chunkCount(const SegmentDef &segment);

/// Compares chunk |chunk| of segment |segment| with its hash. Chunks are independent, so a caller may check them on
/// several threads.
bool checkChunk(const ModelView &view, uint32_t segment, uint64_t chunk, Status &status);

/// Checks all chunks of every segment whose kind has its bit set in |kindMask|: (kindMask >> kind) & 1.
bool checkSegments(const ModelView &view, uint32_t kindMask, Status &status);

/// Compares the SHA-256 of every segment with the stored digest, for `model_tool check`. This is slower than the chunk
/// hashes, which suffice against accidental corruption.
bool checkDigests(const ModelView &view, Status &status);

} // namespace bmodel

#endif // BMODEL_READER_H
