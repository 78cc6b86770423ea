//===- VectorProgram.h - Scalar regions on the NPU's vector unit -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_VECTOR_VECTORPROGRAM_H
#define TESSERA_CODEGEN_NPU_VECTOR_VECTORPROGRAM_H

#include "bmodel/npu/program.h"
#include "mlir/IR/Region.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace tessera::npu {

using Instructions = std::vector<bmodel::npu::Instruction>;

/// Range of a value. Registers are f32 and hold integers as whole numbers, which are exact up to 2^24.
struct Interval {
  double low, high;

  bool within(double least, double most) const { return low >= least && high <= most; }
};

/// Returns the range of an element type.
Interval intervalOf(mlir::Type type);

/// Returns the range of the value that |region| yields, or nothing if the vector unit does not support the region.
std::optional<Interval> boundsOf(mlir::Region &region, llvm::ArrayRef<Interval> arguments);

/// Returns the program that computes the value that |region| yields, stored as |result|. Argument k is in register k
/// and lies in |arguments|[k]. The last instruction produces the result; an empty region gives an empty program. The
/// error names the operation, or the range of integers, that the vector unit does not support.
llvm::Expected<Instructions> programOf(mlir::Region &region, llvm::ArrayRef<Interval> arguments, mlir::Type result);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_VECTOR_VECTORPROGRAM_H
