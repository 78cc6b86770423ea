// SPDX-License-Identifier: Apache-2.0
//===- custom_ops.h - The custom operators of a process -------------------===//
//
// Operators of tessera_custom_op.h, registered by the program or loaded from libraries that the user names. Shared by
// the compiler and the runtime. All functions may be called from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CUSTOM_OPS_H
#define BMODEL_CUSTOM_OPS_H

#include "bmodel/status.h"
#include "tessera_custom_op.h"

namespace bmodel {

/// A registered operator; never removed.
class CustomOp;

/// Registers |op|; a second registration of the same functions does nothing.
bool addCustomOp(const tessera_custom_op_t *op, Status &status);

/// Loads the library |path| and registers its operators. The library is never unloaded.
bool loadCustomOps(const char *path, Status &status);

/// Returns null if the operator is not registered.
const CustomOp *findCustomOp(const char *domain, const char *name);

/// Returns true if the operator's shape rule accepts open sizes.
bool acceptsOpenSizes(const CustomOp &op);

/// Returns true if the operator finds sizes of its outputs when it runs.
bool findsSizes(const CustomOp &op);

/// Applies the shape rule to |call| and checks its result: sets dtype, rank, shape and bytes of the outputs. The bytes
/// of an output with open sizes are 0, and its sizes are not checked. Without |call.combine_sizes|, all sizes are
/// numbers.
bool inferCustomOp(const CustomOp &op, tessera_custom_call_t call, Status &status);

/// Computes the outputs of |call|. Fails with the operator's message.
bool runCustomOp(const CustomOp &op, tessera_custom_call_t call, Status &status);

} // namespace bmodel

#endif // BMODEL_CUSTOM_OPS_H
