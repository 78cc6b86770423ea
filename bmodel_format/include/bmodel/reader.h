// SPDX-License-Identifier: Apache-2.0
//===- reader.h - Verified access to the bytes of a .bmodel ---------------===//
//
// Shared by libbmrt and model_tool. Nothing here allocates, throws or executes; after a check has
// passed, everything the schema points at may be used without further bounds checks.
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

/// What one run may take at most. A file whose calls need more, each loop's body counted once, is refused, and a loop
/// without a condition whose trip count is larger.
inline constexpr uint64_t kMaxRunSteps = uint64_t(1) << 32;
inline constexpr int64_t kMaxTrips = int64_t(1) << 32;
inline constexpr uint32_t kMaxCallDepth = 64;

/// A verified model; points into the caller's bytes, which must stay mapped and unchanged.
struct ModelView {
  const unsigned char *data = nullptr;
  uint64_t bytes = 0;
  const FileHeader *header = nullptr;
  const ModelDef *model = nullptr;

  const unsigned char *segment(uint32_t index) const { return data + model->segments()->Get(index)->offset(); }
};

/// Checks header, hash of the flatbuffer, structure, meaning (validateModel) and that all bytes
/// outside of flatbuffer and segments are zero: everything but the segments' contents, whose
/// first and last pages are the only ones read. |data| must be 64-byte aligned.
bool openModel(const void *data, uint64_t bytes, ModelView &view, Status &status);

/// The rules between the fields of a structurally sound flatbuffer: indices, ranges, overflow,
/// alignment, aliases, argument counts. |fileBytes| bounds the segments; |tableEnd| is where the
/// flatbuffer ends. Messages say which net, stage, subnet, step or tensor.
bool validateModel(const ModelDef &model, uint64_t tableEnd, uint64_t fileBytes, Status &status);

/// A command stream that a step runs: where it is in the subnet's code, and the tensors it runs on.
struct StreamCall {
  uint64_t offset = 0, bytes = 0;
  const flatbuffers::Vector<uint32_t> *inputs = nullptr, *outputs = nullptr; ///< slots; may be null
  const flatbuffers::Vector<uint32_t> *dims = nullptr;                       ///< dim slots; may be null
};

/// The stream of |step|; false where it runs none.
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

/// The memory of the host, where memories are numbered by the chips that they belong to.
inline constexpr int32_t kHostMemory = -1;

/// In whose memory a tensor of |stage| is: kHostMemory or an index into ModelDef.chips. |stage| is a valid one.
int32_t memoryOf(const StageDef &stage, const TensorDef &tensor);

/// In whose memory a workspace is, likewise.
int32_t memoryOf(const WorkspaceDef &workspace);

/// In whose memory the tensors are that kernels and streams of |subnet| run on. Control subnets: the host's.
int32_t memoryOf(const ModelDef &model, const SubnetDef &subnet);

/// The family whose back end runs the code of |subnet|: ChipDef.family, or what an older kind stands for. "" where the
/// chip has none; null for control subnets, which have no code.
const char *familyOf(const ModelDef &model, const SubnetDef &subnet);

/// The workspace that streams of |subnet| have for themselves; null where there is none.
const WorkspaceDef *streamWorkspace(const StageDef &stage, const SubnetDef &subnet);

/// Number of hash chunks of a segment.
uint64_t chunkCount(const SegmentDef &segment);

/// Compares chunk |chunk| of segment |segment| with its hash. Chunks are independent, so that a
/// caller may spread them over threads.
bool checkChunk(const ModelView &view, uint32_t segment, uint64_t chunk, Status &status);

/// All chunks of all segments of which (kindMask >> kind) & 1 is set.
bool checkSegments(const ModelView &view, uint32_t kindMask, Status &status);

/// Compares the SHA-256 of every segment: slower than the chunk hashes, and not needed beside them
/// against accidents; for `model_tool check`.
bool checkDigests(const ModelView &view, Status &status);

} // namespace bmodel

#endif // BMODEL_READER_H
