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
    Ops state storage types, layouts and requantisation explicitly. Constants stay `top.weight` and `top.constant`.
    Locations and `top.outputs` are inherited from Top.

    Decisions are attributes of the ops, each with a verifier that runs between the phases. Address assignment writes:
    `device.addresses`, the byte offset of each result in its memory; `device.memories`, the number of that memory
    (absent: all 0), where 0 is the workspace, k > 0 the memory of function result k - 1, and -k that of function
    argument k - 1; `device.inplace`, the index of the operand whose bytes the result overwrites; `device.elided` on a
    copy whose bytes are already in place. On the function: `device.workspace_bytes`, `device.workspace_lower_bound`,
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
