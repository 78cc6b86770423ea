//===- LoopChip.h - The smallest family of CPUs -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_RISCV64_LOOPCHIP_H
#define TESSERA_CODEGEN_TEST_RISCV64_LOOPCHIP_H

#include "codegen/Native/CpuChip.h"

namespace tessera::test {

/// A CPU without kernels of its own: every op is a loop kernel. This is all that a new family must state before it runs
/// models; register tiles and packing make it fast.
class LoopChip final : public native::CpuChip {
public:
  LoopChip(llvm::StringRef name, native::Machine machine, kernels::VectorTarget vectors)
      : name(name), target(std::move(machine)), vectors(vectors) {}

  llvm::StringRef family() const override { return name; }
  bmodel::ChipDefT describe() const override;
  void buildPasses(mlir::OpPassManager &manager, const codegen::CompileOptions &options) const override;

  native::Machine machine() const override { return target; }

protected:
  native::CpuModel model() const override { return native::unknownHost(); }
  mlir::FailureOr<native::KernelModule> emitKernel(mlir::Operation *op, llvm::StringRef symbol,
                                                   kernels::KernelFrame &frame) const override {
    return native::emitLoopKernel(op, vectors, symbol, frame);
  }

private:
  std::string name;
  native::Machine target;
  kernels::VectorTarget vectors;
};

/// Returns a 64-bit RISC-V with the vector extension.
std::unique_ptr<LoopChip> createRiscv64();

} // namespace tessera::test

#endif // TESSERA_CODEGEN_TEST_RISCV64_LOOPCHIP_H
