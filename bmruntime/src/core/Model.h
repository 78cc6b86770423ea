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

/// The length of a list of a .bmodel; an absent one is empty.
template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// A stream of a subnet and the tensors that it runs on, by the sizes that they have.
struct Stream {
  StreamRun run;
  Array<uint32_t> slots;
  Array<uint64_t> ioBytes;
};

/// The kernels of one subnet, in the order of SubnetDef.kernels.
struct SubnetProgram {
  const bmodel::SubnetDef *def = nullptr;
  Array<bm_kernel_fn> kernels;
  const Backend *backend = nullptr; ///< null: a control subnet
  // Where the backend runs streams:
  StreamProgram target;
  Array<Stream> streams; ///< in the order of the plan
};

/// One stage with its code, or the reason why it cannot run here.
struct StageProgram {
  const bmodel::NetDef *net = nullptr;
  const bmodel::StageDef *def = nullptr;
  uint32_t stageIndex = 0;
  Array<SubnetProgram> subnets;
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
  /// The stage for a context; |net| and |chip| may be null, |stage| BMRT_FIRST_RUNNABLE_STAGE.
  bmrt_code_t findStage(const char *net, uint32_t stage, const char *chip, const bmrt::core::StageProgram **out,
                        bmrt_status_t *status) const;
  /// Whether |chip| is the name or the family of a stage's chip.
  bool isFor(const bmrt::core::StageProgram &stage, const char *chip) const;
  /// Of all nets, in file order.
  const bmrt::core::Array<bmrt::core::StageProgram> &getStages() const { return stages; }

  bmodel::ModelView view;
  std::atomic<uint32_t> references = 1;

private:
  bmrt_code_t loadStages(const char *name, bmrt_status_t *status);
  bmrt_code_t loadStage(bmrt::core::StageProgram &stage, bmrt_status_t *status);
  bmrt_code_t loadSubnet(bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  bmrt_code_t loadStreams(const bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet,
                          bmrt_status_t *status) const;
  bool describeStream(const bmodel::StageDef &stage, const bmodel::SubnetDef &subnet, const bmodel::StepDef &step,
                      bmrt::core::Stream &stream) const;

  bmrt::core::MappedFile file;
  bmrt::core::Array<bmrt::core::StageProgram> stages;
  bmrt::core::Array<bmrt::core::CodeImage *> images; ///< by segment; null if not loaded
};

#endif // BMRT_CORE_MODEL_H
