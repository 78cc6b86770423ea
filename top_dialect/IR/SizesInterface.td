//===- SizesInterface.td - Encodings that hold sizes -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_SIZES_INTERFACE
#define TOP_SIZES_INTERFACE

include "mlir/IR/Interfaces.td"

def SizesInterface : AttrInterface<"SizesInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{
    A tensor encoding that holds the symbolic sizes of its tensor. `#top.dims` holds nothing else; a layout of a device
    that implements this interface holds them in addition to the layout.
  }];
  let methods = [
    InterfaceMethod<"Returns one size per dim, null for an unknown one; empty if the tensor has no symbolic size.",
        "::llvm::ArrayRef<::tessera::top::SizeAttr>", "getSizes">,
    InterfaceMethod<"Returns this layout for a tensor of other sizes, null if none is left. Empty: no symbolic size.",
        "::mlir::Attribute", "withSizes", (ins "::llvm::ArrayRef<::tessera::top::SizeAttr>":$sizes)>,
  ];
}

#endif // TOP_SIZES_INTERFACE
