//===- ScalarTranslator.h - Scalar regions as instructions ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_VECTOR_SCALARTRANSLATOR_H
#define TESSERA_CODEGEN_NPU_VECTOR_SCALARTRANSLATOR_H

#include "codegen/Npu/Vector/VectorProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace tessera::npu {

/// Translates a scalar region to instructions, first in SSA form (each node has its own register), then with assigned
/// registers.
class ScalarTranslator {
public:
  llvm::Expected<Instructions> run(mlir::Region &region, llvm::ArrayRef<Interval> arguments, mlir::Type result);
  /// Keeps divisions by constants. Replacing them takes more instructions and constants, which may not fit a program.
  void keepDivisions() { keepsDivisions = true; }
  /// Translates the region and returns the range of its result.
  llvm::Expected<Interval> bounds(mlir::Region &region, llvm::ArrayRef<Interval> arguments);

private:
  /// A value of the region: an argument, a constant or the result of an instruction.
  struct Node {
    bmodel::npu::Op op;
    llvm::SmallVector<unsigned, 3> operands;
    float constant;
    Interval interval;
    bool isArgument;
    bool isWhole = false;
    bool isSigned = false; ///< may be -0
    bool mayBeNaN = false;
  };

  bool mayBeMinusZero(bmodel::npu::Op op, llvm::ArrayRef<unsigned> operands) const;
  bool mayBeNaN(bmodel::npu::Op op, llvm::ArrayRef<unsigned> operands) const;
  unsigned numberOrZero(unsigned from);

  unsigned add(bmodel::npu::Op op, llvm::ArrayRef<unsigned> operands, Interval interval);
  unsigned constant(float value);
  llvm::Error translate(mlir::Operation *op);
  llvm::Error translateConstant(mlir::arith::ConstantOp op);
  llvm::Error translateCompare(mlir::arith::CmpFOp op);
  llvm::Error translateCompare(mlir::arith::CmpIOp op);
  llvm::Error translateLogic(mlir::Operation *op);
  llvm::Error translateConversion(mlir::Operation *op);
  std::optional<unsigned> quotientOf(mlir::arith::DivFOp op);
  unsigned withoutSign(mlir::Operation *op, unsigned from);
  unsigned roundedTo(mlir::Type type, unsigned from);
  unsigned withoutBounds(unsigned result, Interval allowed) const;
  Instructions assignRegisters(unsigned result);

  bool keepsDivisions = false;
  std::vector<Node> nodes;
  std::map<uint32_t, unsigned> constants; ///< bits -> node
  llvm::DenseMap<mlir::Value, unsigned> places;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_VECTOR_SCALARTRANSLATOR_H
