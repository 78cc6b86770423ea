//===- ScalarTranslator.h - Scalar regions as instructions ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCALARTRANSLATOR_H
#define TESSERA_CODEGEN_NPU_SCALARTRANSLATOR_H

#include "codegen/Npu/VectorProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace tessera::npu {

/// Instructions on registers without number: each has its own.
class ScalarTranslator {
public:
  llvm::Expected<Instructions> run(mlir::Region &region, llvm::ArrayRef<Interval> arguments, mlir::Type result);
  /// Divisions stay as they are: a program may have no room for more instructions and constants.
  void keepDivisions() { keepsDivisions = true; }
  /// All but the program: what the result lies between.
  llvm::Expected<Interval> bounds(mlir::Region &region, llvm::ArrayRef<Interval> arguments);

private:
  /// Where a value is: an index into `nodes`.
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

#endif // TESSERA_CODEGEN_NPU_SCALARTRANSLATOR_H
