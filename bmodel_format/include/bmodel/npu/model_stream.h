// SPDX-License-Identifier: Apache-2.0
//===- model_stream.h - The command stream of a .bmodel ---------------------===//
#ifndef BMODEL_NPU_MODEL_STREAM_H
#define BMODEL_NPU_MODEL_STREAM_H

#include "bmodel/npu/check.h"
#include "bmodel/npu/report.h"
#include "bmodel/reader.h"

#include <string>
#include <vector>

namespace bmodel::npu {

/// A command stream of a file, and what is known of it. Points into the file.
struct ModelStream {
  const Descriptor *commands = nullptr;
  size_t count = 0;
  const unsigned char *constants = nullptr;
  RegionSizes sizes;
  std::string chip, fingerprint;   ///< the chip's description, and what the program is for
  std::vector<std::string> layers; ///< names (ONNX nodes) by Header::layer
};

/// A stage of a file, by its number among all of its nets.
struct NumberedStage {
  size_t number = 0;
  const StageDef *stage = nullptr;
};

/// The stages of an opened file that are for an NPU, in the file's order: with streams, or left to its host.
std::vector<NumberedStage> findNpuStages(const ModelView &view);

/// The streams of a stage in the order in which they run; none where its host runs all of it. A message where it has
/// commands of another version. Neither chip nor commands have been looked at.
std::string findStreams(const ModelView &view, const StageDef &stage, std::vector<ModelStream> &streams);

/// What the stage leaves to the host.
HostShare findHostShare(const StageDef &stage);

/// How long a run of the stage takes by the model of time that compiler and simulator share: the streams, what the host
/// does, and the hand-overs. A message where a stream or its chip is no good.
std::string estimateMicroseconds(const ModelView &view, const StageDef &stage, double &microseconds);

} // namespace bmodel::npu

#endif // BMODEL_NPU_MODEL_STREAM_H
