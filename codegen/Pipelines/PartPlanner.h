//===- PartPlanner.h - Adds the subnets of a part to a stage ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PARTPLANNER_H
#define TESSERA_CODEGEN_PIPELINES_PARTPLANNER_H

#include "codegen/Pipelines/StageBuilder.h"

#include "llvm/ADT/MapVector.h"

namespace tessera::codegen {

/// Adds the subnets of one part, the copies between memories, and the values that live between its subnets.
class PartPlanner {
public:
  /// The steps that call the subnets become part of |control|; null: of a new subnet, if they are needed at all.
  PartPlanner(StageBuilder &builder, const PlannedPart &part, bmodel::SubnetDefT *control)
      : builder(builder), part(part), main(control) {}

  /// |inputs| and |outputs|: slots of the arguments and results of the part, in the host's memory.
  llvm::Error plan(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs);

private:
  /// A value in a memory.
  using Copy = std::pair<mlir::Value, int32_t>;

  void bindPorts(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs);
  void findTransfers();
  void bring(mlir::Value value, int32_t memory, int64_t subnet, std::vector<std::pair<Copy, Copy>> &copies);
  llvm::Error placeBetween();
  void addSubnets();
  bmodel::SubnetDefT &addSubnet(size_t number);
  void addCall(size_t number);
  void addCopies(llvm::ArrayRef<std::pair<Copy, Copy>> copies);
  std::vector<uint32_t> linkTensors(const partition::Subnet &subnet, SubnetProgram &program);
  const StageBuilder::Linked &linkOf(size_t subnet) const {
    return builder.linkOf(part.partition->subnets()[subnet].target);
  }
  std::vector<uint32_t> slotsOf(llvm::ArrayRef<mlir::Value> values, int32_t memory) const;

  StageBuilder &builder;
  const PlannedPart &part;
  bmodel::SubnetDefT *main; ///< calls the other subnets if a run takes more than one
  llvm::DenseMap<Copy, uint32_t> slots;
  llvm::DenseMap<mlir::Value, int32_t> home; ///< memory in which a value is computed
  llvm::DenseSet<Copy> available;            ///< copies that exist so far
  /// Buffers of values that live between subnets, with first and last subnet; the end of the run counts as one more
  /// subnet.
  llvm::MapVector<Copy, device::Buffer> between;
  std::vector<std::vector<std::pair<Copy, Copy>>> before; ///< copies to make before each subnet
  /// Results without a separate tensor: arguments, constants, and values that are returned twice.
  std::vector<std::pair<mlir::Value, uint32_t>> repeated;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PARTPLANNER_H
