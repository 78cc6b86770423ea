//===- Partition.h - A device function cut into subnets ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// There is no list of what a chip can do: the target's own code is asked, op by op, and what it refuses later, when it
// compiles, is told to the partition too, which then decides again.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_PARTITION_H
#define TESSERA_CODEGEN_PARTITION_PARTITION_H

#include "codegen/Partition/Decide.h"
#include "codegen/Target/Target.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::partition {

/// Ops that run one after another on one target.
struct Subnet {
  uint32_t target = 0;                    ///< index of the list of targets
  std::string name;                       ///< npu_0, host_1, ...
  std::vector<mlir::Operation *> ops;     ///< in the order of the program
  llvm::SmallVector<mlir::Value> inputs;  ///< no constants; arguments of the function first
  llvm::SmallVector<mlir::Value> outputs; ///< that others read, or that the model returns: the latter first
  double seconds = 0;                     ///< sum of Target::secondsOf
};

/// An op that does not run on the first target, and why.
struct MovedOp {
  mlir::Operation *op;
  std::string reason;
  bool isRefused; ///< the first target cannot run it; else it could, but costs less beside its neighbours elsewhere
};

class Partition {
public:
  using Targets = llvm::ArrayRef<const codegen::Target *>;

  /// Asks what the targets refuse, which are in the order of preference and outlive this. The function holds device ops
  /// without layouts and addresses. Where only an epilogue keeps a product from a chip it is split off.
  Partition(mlir::func::FuncOp function, Targets targets);

  /// One more op that a target cannot run. False where that is known already, or the op is none of the function's.
  bool refuse(uint32_t target, mlir::Operation *op, std::string reason);

  /// Cuts the function by what is known. One subnet of the first target where it refuses nothing. Error where there are
  /// ops that the last target cannot run, or one runs nothing of any model.
  llvm::Error decide();

  llvm::ArrayRef<const codegen::Target *> targets() const { return chips; }
  const std::vector<Subnet> &subnets() const { return made; }
  /// Whether the first target runs all of it, in one subnet.
  bool isWhole() const { return made.size() == 1 && made.front().target == 0; }
  const std::vector<MovedOp> &movedOps() const { return moved; }
  /// What it costs to begin a subnet behind the one before it.
  double handOverSeconds(size_t subnet) const;

private:
  using Refusals = llvm::DenseMap<mlir::Operation *, std::string>;

  void surveyAll();
  void survey(uint32_t target);
  bool runsWithoutEpilogue(uint32_t target, mlir::Operation *op);
  bool splitEpilogues();
  Problem makeProblem() const;
  std::string reasonOf(mlir::Operation *op, uint32_t target, double seconds) const;
  llvm::Error checkLastTarget() const;

  mlir::func::FuncOp function;
  Targets chips;
  std::vector<mlir::Operation *> ops;  ///< all but constants, views of such, and the terminator
  std::vector<Refusals> refused;       ///< by target
  std::vector<std::string> refusesAll; ///< by target: why it runs nothing
  std::vector<Subnet> made;
  std::vector<MovedOp> moved;
};

/// Multiplications of convolutions, matrix products, attention and recurrent layers; 0 of other ops.
int64_t countProducts(mlir::Operation *op);

/// Bytes of the tensor, as it is stored.
int64_t bytesOf(mlir::Value value);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_PARTITION_H
