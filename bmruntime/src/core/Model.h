// SPDX-License-Identifier: Apache-2.0
//===- Model.h - An opened .bmodel ----------------------------------------===//
#ifndef BMRT_CORE_MODEL_H
#define BMRT_CORE_MODEL_H

#include "Backend.h"
#include "MappedFile.h"
#include "Memory.h"
#include "Status.h"
#include "bmodel/reader.h"

#include <atomic>

namespace bmrt::core {

/// The kernels of one subnet, in the order of SubnetDef.kernels.
struct SubnetProgram {
  const bmodel::SubnetDef *def = nullptr;
  Array<bm_kernel_fn> kernels;
  const Backend *backend = nullptr; ///< null: a control subnet
  StreamProgram streams;            ///< where the backend runs streams; ioBytes are the stage's
};

/// One stage with its code, or the reason why it cannot run here.
struct StageProgram {
  const bmodel::NetDef *net = nullptr;
  const bmodel::StageDef *def = nullptr;
  uint32_t stageIndex = 0;
  Array<SubnetProgram> subnets;
  Array<uint64_t> ioBytes;    ///< of the inputs, then of the outputs
  bmrt_status_t refusal = {}; ///< code is BMRT_OK if the stage can run
};

} // namespace bmrt::core

/// Immutable after open; freed with the last reference.
struct bmrt_model_t {
  bmrt_model_t() = default;
  ~bmrt_model_t();

  /// Verifies |mapped| and loads its code. |name| is for messages.
  bmrt_code_t open(bmrt::core::MappedFile mapped, const char *name, bool trustConstants, bmrt_status_t *status);

  const bmodel::NetDef *net(uint32_t index) const;
  /// Null if out of range.
  const bmrt::core::StageProgram *stage(uint32_t net, uint32_t index) const;
  /// The stage for a context; |net| may be null, |stage| BMRT_FIRST_RUNNABLE_STAGE.
  bmrt_code_t findStage(const char *net, uint32_t stage, const bmrt::core::StageProgram **out,
                        bmrt_status_t *status) const;

  bmodel::ModelView view;
  std::atomic<uint32_t> references = 1;

private:
  bmrt_code_t loadStages(const char *name, bmrt_status_t *status);
  bmrt_code_t loadStage(bmrt::core::StageProgram &stage, bmrt_status_t *status);
  bmrt_code_t loadSubnet(bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  void describeStreams(const bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet) const;

  bmrt::core::MappedFile file;
  bmrt::core::Array<bmrt::core::StageProgram> stages; ///< of all nets, in file order
  bmrt::core::Array<bmrt::core::CodeImage *> images;  ///< by segment; null if not loaded
};

#endif // BMRT_CORE_MODEL_H
