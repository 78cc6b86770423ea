// SPDX-License-Identifier: Apache-2.0
//===- DeviceConstants.h - Constants in the memory of chips ---------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_DEVICECONSTANTS_H
#define TESSERA_BMRUNTIME_SRC_CORE_DEVICECONSTANTS_H

#include "Device.h"
#include "Memory.h"
#include "bmodel/reader.h"

#include <pthread.h>

namespace bmrt::core {

struct StageProgram;

/// The constants of a model in the memory of chips. They are copied once, when the first context needs them, and shared
/// by all contexts. Constants that are adjacent in the file are adjacent on the chip.
class DeviceConstants {
public:
  /// Lists the constants of all stages that can run, without copying them.
  bmrt_code_t describe(const bmodel::ModelView &view, const Array<StageProgram> &stages, bmrt_status_t *status);

  /// Copies the constants of |stage| that have not been copied yet. May be called from any thread.
  bmrt_code_t place(const bmodel::ModelView &view, const StageProgram &stage, bmrt_status_t *status);

  /// Returns the address of a constant on its chip; requires place() of its stage.
  char *address(const bmodel::TensorDef &tensor) const;

private:
  /// Bytes [begin, end) of a segment for one chip.
  struct Block {
    uint32_t chip = 0, segment = 0;
    uint64_t begin = 0, end = 0;
    DeviceBuffer memory;
  };

  const Block &blockOf(const bmodel::TensorDef &tensor) const;
  bmrt_code_t copy(const bmodel::ModelView &view, const Device &device, Block &block, bmrt_status_t *status);

  Array<Block> blocks; ///< by chip, segment and begin
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_DEVICECONSTANTS_H
