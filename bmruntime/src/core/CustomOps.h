// SPDX-License-Identifier: Apache-2.0
//===- CustomOps.h - Calls of custom operators ----------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H
#define TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H

#include "StageProgram.h"
#include "Status.h"
#include "bmodel/custom_ops.h"

namespace bmrt::core {

/// Finds the operators that the steps of |subnet| call, and checks that their shape rules agree with the file.
bmrt_code_t resolveCustomOps(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status);

/// Returns the type and shape of a tensor; the data is null.
tessera_tensor_t describeCustomTensor(const bmodel::TensorDef &tensor);

/// Makes the call that is |step| of |subnet| with |tensors|. |op|: from SubnetProgram::kernels.
bmrt_code_t runCustomOp(const bmodel::SubnetDef &subnet, const bmodel::StepDef &step, const void *op,
                        tessera_tensor_t *tensors, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H
