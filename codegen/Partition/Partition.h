//===- Partition.h - Splitting a device function into subnets ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// There is no table of what a chip supports. Each target's own emitter is asked op by op, and an op that it rejects
// later, during compilation, is reported to the partition, which then decides again.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_PARTITION_H
#define TESSERA_CODEGEN_PARTITION_PARTITION_H

#include "codegen/Partition/Decide.h"
#include "codegen/Partition/Outline.h"
#include "codegen/Target/Target.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::partition {

/// Ops that run one after another on one target.
struct Subnet {
  uint32_t target = 0;                    ///< index in the list of targets
  std::string name;                       ///< npu_0, host_1, ...
  std::vector<mlir::Operation *> ops;     ///< in program order
  llvm::SmallVector<mlir::Value> inputs;  ///< without constants; arguments of the function first
  llvm::SmallVector<mlir::Value> outputs; ///< values that other subnets read or the model returns; the latter first
  double seconds = 0;                     ///< sum of Target::secondsOf
};

/// An op that does not run on the first target, and the reason.
struct MovedOp {
  mlir::Operation *op;
  std::string reason;
  bool isUnsupported; ///< the first target cannot run it; if false, it could, but is cheaper elsewhere
};

class Partition {
public:
  using Targets = llvm::ArrayRef<const codegen::Target *>;

  /// Surveys which ops each target rejects. |targets| are in the order of preference and outlive this object. The
  /// function holds device ops without layouts and addresses. If only its epilogue keeps a convolution, matmul or pool
  /// off a chip, the epilogue is split off.
  Partition(mlir::func::FuncOp function, Targets targets);

  /// Records one more op that a target cannot run. Returns false if that is already known or the op is not in the
  /// function.
  bool reject(uint32_t target, mlir::Operation *op, std::string reason);

  /// Splits the function by what is known so far; gives one subnet of the first target if that supports all ops. Fails
  /// if the last target cannot run some op, or a target rejects the function as a whole.
  llvm::Error decide();

  llvm::ArrayRef<const codegen::Target *> targets() const { return chips; }
  const std::vector<Subnet> &subnets() const { return allSubnets; }
  /// Returns true if the first target runs the whole function in one subnet.
  bool isWhole() const { return allSubnets.size() == 1 && allSubnets.front().target == 0; }
  const std::vector<MovedOp> &movedOps() const { return moved; }
  /// Returns the time for starting a subnet after the previous one.
  double handOverSeconds(size_t subnet) const;

private:
  using Rejections = llvm::DenseMap<mlir::Operation *, std::string>;

  void surveyAll();
  void survey(uint32_t target);
  Outlined copyFor(uint32_t target);
  bool runsWithoutEpilogue(uint32_t target, mlir::Operation *op);
  bool splitEpilogues();
  Problem makeProblem() const;
  std::string reasonOf(mlir::Operation *op, uint32_t target, double seconds) const;
  llvm::Error checkLastTarget() const;

  mlir::func::FuncOp function;
  Targets chips;
  std::vector<mlir::Operation *> ops;  ///< all ops but constants, views of constants, and the terminator
  std::vector<Rejections> rejected;    ///< by target
  std::vector<std::string> rejectsAll; ///< by target: why it rejects the whole function, or ""
  std::vector<Subnet> allSubnets;
  std::vector<MovedOp> moved;
};

/// Returns the number of multiplications of a convolution, matmul, attention or recurrent op; 0 for other ops.
int64_t countMacs(mlir::Operation *op);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_PARTITION_H
