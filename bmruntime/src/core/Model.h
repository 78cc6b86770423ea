// SPDX-License-Identifier: Apache-2.0
//===- Model.h - An opened .bmodel ----------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_MODEL_H
#define TESSERA_BMRUNTIME_SRC_CORE_MODEL_H

#include "DeviceConstants.h"
#include "MappedFile.h"
#include "Memory.h"
#include "StageProgram.h"
#include "Status.h"
#include "bmodel/reader.h"

#include <atomic>

/// Immutable after open; freed with the last reference.
struct bmrt_model_t {
  bmrt_model_t() = default;
  ~bmrt_model_t();

  /// Verifies |mapped| and loads its code. |name| is for messages.
  bmrt_code_t open(bmrt::core::MappedFile mapped, const char *name, const bmrt_open_options_t &options,
                   bmrt_status_t *status);

  const bmodel::NetDef *net(uint32_t index) const;
  /// Returns null if out of range.
  const bmrt::core::StageProgram *stage(uint32_t net, uint32_t index) const;
  /// Finds the stage for a context; |net| and |chip| may be null, |stage| may be BMRT_FIRST_RUNNABLE_STAGE.
  bmrt_code_t findStage(const char *net, uint32_t stage, const char *chip, const bmrt::core::StageProgram **out,
                        bmrt_status_t *status) const;
  /// Returns true if |chip| is the name or the family of a stage's chip.
  bool isFor(const bmrt::core::StageProgram &stage, const char *chip) const;
  /// Copies the constants of |stage| to the memories of chips, unless they are already there. May be called from any
  /// thread.
  bmrt_code_t placeConstants(const bmrt::core::StageProgram &stage, bmrt_status_t *status) {
    return constants.place(view, stage, status);
  }
  /// Returns the address of a constant in its memory; for a chip's memory, requires placeConstants.
  char *constantAddress(const bmodel::TensorDef &tensor) const;
  /// Returns the stages of all nets, in file order.
  const bmrt::core::Array<bmrt::core::StageProgram> &getStages() const { return stages; }

  bmodel::ModelView view;
  std::atomic<uint32_t> references = 1;

private:
  bmrt_code_t chooseDevices(const char *wanted, bmrt_status_t *status);
  bmrt_code_t loadStages(const char *name, bmrt_status_t *status);
  bmrt_code_t loadStage(bmrt::core::StageProgram &stage, bmrt_status_t *status);
  bmrt_code_t loadSubnet(bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  bmrt_code_t findRunner(bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  bmrt_code_t openDevice(uint32_t chip, const bmrt_backend_t &backend, bmrt::core::Device **out, bmrt_status_t *status);
  bmrt_code_t openMemories(bmrt::core::StageProgram &stage, bmrt_status_t *status);
  bmrt_code_t loadCode(bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  bmrt_code_t loadKernels(bmrt::core::SubnetProgram &subnet, bmrt_status_t *status);
  bmrt_code_t loadStreams(const bmrt::core::StageProgram &stage, bmrt::core::SubnetProgram &subnet,
                          bmrt_status_t *status) const;
  bool describeStream(const bmodel::StageDef &stage, const bmodel::SubnetDef &subnet, const bmodel::StepDef &step,
                      bmrt::core::Stream &stream) const;

  /// The code of a segment, loaded for a chip.
  struct Code {
    uint32_t segment = 0;
    const bmrt_backend_t *backend = nullptr;
    const bmrt::core::Device *device = nullptr;
    bmrt_program_t *program = nullptr;
  };

  bmrt::core::MappedFile file;
  bmrt::core::Array<bmrt::core::Device> devices; ///< by chip
  bmrt::core::Array<uint32_t> ordinals;          ///< by chip; see bmrt_chip_t
  bmrt::core::DeviceConstants constants;
  bmrt::core::Array<bmrt::core::StageProgram> stages;
  bmrt::core::Array<Code> loaded;
  size_t loadedCount = 0;
};

#endif // TESSERA_BMRUNTIME_SRC_CORE_MODEL_H
