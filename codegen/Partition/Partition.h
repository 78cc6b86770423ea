//===- Partition.h - A device function cut into subnets ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// There is no list of what the NPU can do: its emitter is asked, op by op, and what it refuses later, when memory is
// planned, is told to the partition too, which then decides again.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_PARTITION_H
#define TESSERA_CODEGEN_PARTITION_PARTITION_H

#include "codegen/Npu/Npu.h"
#include "codegen/Partition/Costs.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::partition {

/// Ops that run one after another on one side.
struct Subnet {
  bool onHost = false;
  std::string name;                       ///< npu_0, host_1, ...
  std::vector<mlir::Operation *> ops;     ///< in the order of the program
  llvm::SmallVector<mlir::Value> inputs;  ///< no constants
  llvm::SmallVector<mlir::Value> outputs; ///< that others read, or that the model returns
  double seconds = 0;                     ///< on the host: by the model of Costs.h
};

/// An op that runs on the host, and why.
struct HostOp {
  mlir::Operation *op;
  std::string reason;
  bool isRefused; ///< the chip cannot run it; else it could, but costs less beside its neighbours
};

class Partition {
public:
  /// Asks what the chip refuses. The function holds device ops without layouts and addresses (npu::buildLowering).
  /// Where only an epilogue keeps a product from the chip it is split off.
  Partition(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

  /// Why the chip runs nothing of any model; nothing: it does.
  const std::optional<std::string> &refusedChip() const { return chipRefusal; }

  /// One more op for the host. False where it is there already, or is none of the function's.
  bool refuse(mlir::Operation *op, std::string reason);

  /// Cuts the function by what is known. One subnet of the NPU where nothing is refused.
  void decide();

  const std::vector<Subnet> &subnets() const { return made; }
  const std::vector<HostOp> &hostOps() const { return onHost; }

private:
  void listOps();
  void survey();
  bool runsWithoutEpilogue(mlir::Operation *op);
  bool splitEpilogues();

  mlir::func::FuncOp function;
  const bmodel::npu::Chip &chip;
  HostModel host;
  std::optional<std::string> chipRefusal;
  std::vector<mlir::Operation *> ops; ///< all but constants, views of such, and the terminator
  llvm::DenseMap<mlir::Operation *, std::string> refused;
  std::vector<Subnet> made;
  std::vector<HostOp> onHost;
};

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_PARTITION_H
