//===- ChipPass.h - Base class of passes for one chip -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CHIPPASS_H
#define TESSERA_CODEGEN_NPU_CHIPPASS_H

#include "codegen/Npu/Chips.h"
#include "codegen/Npu/Passes.h"
#include "device_dialect/IR/DeviceDialect.h"

namespace tessera::npu {

/// Base class of passes with the option `chip`. The chip is passed to the constructor or, in `initialize`, found by
/// that option.
template <typename Base>
class ChipPass : public Base {
public:
  using Base::Base;
  ChipPass() = default;
  explicit ChipPass(const bmodel::npu::Chip &chip) : known(chip) {}

  mlir::LogicalResult initialize(mlir::MLIRContext *context) override {
    if (known) {
      return mlir::success();
    }
    llvm::Expected<bmodel::npu::Chip> found = findChip(this->chipName);
    if (!found) {
      return mlir::emitError(mlir::UnknownLoc::get(context)) << llvm::toString(found.takeError());
    }
    known = std::move(*found);
    return mlir::success();
  }

protected:
  const bmodel::npu::Chip &chip() const { return *known; }

private:
  std::optional<bmodel::npu::Chip> known;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CHIPPASS_H
