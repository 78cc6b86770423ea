// SPDX-License-Identifier: Apache-2.0
//===- DeviceConstants.h - Constants in the memory of chips ---------------===//
#ifndef BMRT_CORE_DEVICECONSTANTS_H
#define BMRT_CORE_DEVICECONSTANTS_H

#include "Device.h"
#include "Memory.h"
#include "bmodel/reader.h"

#include <pthread.h>

namespace bmrt::core {

struct StageProgram;

/// The constants of a model that chips have in memory of their own: copied there once, when the first context needs
/// them, and shared by all. Constants that lie side by side in the file do so there.
class DeviceConstants {
public:
  /// Lists what the stages that can run have, none of it copied yet.
  bmrt_code_t describe(const bmodel::ModelView &view, const Array<StageProgram> &stages, bmrt_status_t *status);

  /// Copies what |stage| needs and is not there yet. From any thread.
  bmrt_code_t place(const bmodel::ModelView &view, const StageProgram &stage, bmrt_status_t *status);

  /// Where a constant of a chip is; the stage of the constant has been placed.
  char *address(const bmodel::TensorDef &tensor) const;

private:
  /// Bytes [begin, end) of a segment for a chip.
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

#endif // BMRT_CORE_DEVICECONSTANTS_H
