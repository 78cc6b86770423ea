//===- VectorProgram.h - Scalar regions on the NPU's vector unit -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_VECTORPROGRAM_H
#define TESSERA_CODEGEN_NPU_VECTORPROGRAM_H

#include "bmodel/npu/program.h"
#include "mlir/IR/Region.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace tessera::npu {

using Instructions = std::vector<bmodel::npu::Instruction>;

/// Numbers that a value lies between. Registers are f32: integers are whole numbers in them, exact up to 2^24.
struct Interval {
  double low, high;

  bool within(double least, double most) const { return low >= least && high <= most; }
};

/// All numbers of a tensor's element type.
Interval intervalOf(mlir::Type type);

/// What the value that |region| yields lies between; nothing where the unit cannot compute it.
std::optional<Interval> boundsOf(mlir::Region &region, llvm::ArrayRef<Interval> arguments);

/// What computes the value that |region| yields, stored as |result|; argument k is in register k and lies in
/// |arguments|[k]. The last instruction has the result; an empty region has none. The error says which operation, or
/// which range of integers, the unit cannot do.
llvm::Expected<Instructions> programOf(mlir::Region &region, llvm::ArrayRef<Interval> arguments, mlir::Type result);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_VECTORPROGRAM_H
