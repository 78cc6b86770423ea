//===- DeviceDialect.td - One vocabulary for every chip --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_DIALECT
#define DEVICE_DIALECT

include "mlir/IR/OpBase.td"

def Device_Dialect : Dialect {
  let name = "device";
  let cppNamespace = "::tessera::device";
  let summary = "The closed vocabulary every chip executes";
  let description = [{
    Storage types, explicit layouts, explicit requantisation. Constants stay `top.weight` and
    `top.constant`. Locations and `top.outputs` carry on from Top.

    Decisions are attributes of the ops, each with a verifier that runs between the phases. What
    address assignment decides: `device.addresses`, the byte offset of each result in its memory;
    `device.memories`, which memory that is (absent: all 0): 0 the workspace, k > 0 that of function
    result k - 1, -k that of function argument k - 1; `device.inplace`, the index of the operand
    whose bytes the result overwrites; `device.elided` on a copy all of whose bytes lie where they
    should without it. On the function `device.workspace_bytes`, `device.workspace_lower_bound`,
    `device.chip`.
  }];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kAddressesAttr = "device.addresses";
    static constexpr ::llvm::StringLiteral kMemoriesAttr = "device.memories";
    static constexpr ::llvm::StringLiteral kElidedAttr = "device.elided";
    static constexpr ::llvm::StringLiteral kInplaceAttr = "device.inplace";
    static constexpr ::llvm::StringLiteral kWorkspaceBytesAttr = "device.workspace_bytes";
    static constexpr ::llvm::StringLiteral kWorkspaceLowerBoundAttr = "device.workspace_lower_bound";
    static constexpr ::llvm::StringLiteral kChipAttr = "device.chip";
  }];
}

#endif // DEVICE_DIALECT
