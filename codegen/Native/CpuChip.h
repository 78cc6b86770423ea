//===- CpuChip.h - What the families of CPUs share --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_CPUCHIP_H
#define TESSERA_CODEGEN_NATIVE_CPUCHIP_H

#include "codegen/Kernels/KernelSet.h"
#include "codegen/Native/CpuModel.h"
#include "codegen/Native/KernelCompiler.h"
#include "codegen/Target/ConstantSection.h"

namespace tessera::native {

/// A chip that is a CPU: a host that runs every op by calling a compiled kernel. A family adds name, passes, speed and
/// machine, and kernels of its own for the ops for which loop kernels are too slow.
class CpuChip : public codegen::Target {
public:
  bool runsEverything() const override { return true; }
  bool supportsSymbolicSizes() const override { return true; }
  bool canInstrument() const override { return true; }
  std::vector<std::string> requantisations() const override { return {"float", "fixed", "tflite"}; }

  std::vector<codegen::UnsupportedOp> survey(mlir::func::FuncOp function) const override;
  double secondsOf(mlir::Operation *op) const override;
  codegen::MachineModel machineModel() const override { return model().rates; }
  /// Returns 0: the family accesses the memory of the other targets, which account for the cost of transfers.
  double transferSeconds(int64_t) const override { return 0; }
  double handOverSeconds() const override { return 0; }

  llvm::Expected<std::optional<codegen::TargetProgram>>
  compile(llvm::ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
          const codegen::PhaseObserver &observer, std::vector<codegen::UnsupportedOp> &unsupportedOps) const override;

protected:
  virtual Machine machine() const = 0;
  virtual CpuModel model() const = 0;
  /// Emits the kernel of |op| as a KernelEmitter does.
  virtual mlir::FailureOr<KernelModule> emitKernel(mlir::Operation *op, llvm::StringRef symbol,
                                                   kernels::KernelFrame &frame) const = 0;
  /// Returns the kind of a subnet, which may be the whole model.
  virtual bmodel::SubnetKind subnetKind(bool /*isWhole*/) const { return bmodel::SubnetKind::Device; }

private:
  llvm::Error compileKernels(llvm::ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                             const codegen::PhaseObserver &observer, kernels::KernelSet &kernels,
                             codegen::TargetProgram &program) const;
  llvm::Error plan(const codegen::Subnet &subnet, const kernels::KernelSet &kernels,
                   codegen::ConstantSection &constants, codegen::TargetProgram &program) const;
};

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_CPUCHIP_H
