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

/// A command stream of a file and the data that it needs. Points into the file.
struct ModelStream {
  const Descriptor *commands = nullptr;
  size_t count = 0;
  const unsigned char *constants = nullptr;
  RegionSizes sizes;
  std::string chip, fingerprint;   ///< the chip's description, and the fingerprint that the program was compiled for
  std::vector<std::string> layers; ///< names (ONNX nodes), indexed by Header::layer
};

/// A stage of a file and its number, counted over all nets.
struct NumberedStage {
  size_t number = 0;
  const StageDef *stage = nullptr;
};

/// Returns the stages of an opened file that target an NPU, in file order, including stages whose subnets all run on
/// the host.
std::vector<NumberedStage> findNpuStages(const ModelView &view);

/// Lists the streams of a stage in execution order; the list is empty if the host runs the whole stage. Returns a
/// message if the commands have another ISA version. Does not check chip or commands.
std::string findStreams(const ModelView &view, const StageDef &stage, std::vector<ModelStream> &streams);

/// Returns the share of the stage that the host runs.
HostShare findHostShare(const StageDef &stage);

/// Estimates the duration of one run of the stage with the latency model that compiler and simulator share: streams,
/// host subnets and transfers between host and chip. Returns a message if a stream or its chip is invalid.
std::string estimateMicroseconds(const ModelView &view, const StageDef &stage, double &microseconds);

} // namespace bmodel::npu

#endif // BMODEL_NPU_MODEL_STREAM_H
