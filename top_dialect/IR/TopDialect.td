//===- TopDialect.td - The framework-neutral graph dialect -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_DIALECT
#define TOP_DIALECT

include "mlir/IR/OpBase.td"

def Top_Dialect : Dialect {
  let name = "top";
  let cppNamespace = "::tessera::top";
  let summary = "Framework-neutral neural network graph";
  let description = [{
    Values are tensors in the layout of the source framework (NCHW for ONNX), possibly with `?` dims.
    A network is a `func.func`. Its arguments and results carry `top.name`, the ONNX tensor name. Arguments also carry
    `top.preprocess` if the model stores its pre-processing.

    Any op has these attributes:
    - location: `NameLoc` with the ONNX node name, or a `FusedLoc` of several after fusion;
    - `top.outputs = ["t", ...]`: result i equals the ONNX tensor of that name ("" for none).

    Module attributes: `top.weight_file` (file name, in the folder of the .mlir), `top.weight_hash`
    (XXH3-128 of that file, hex), `top.model_name`, `top.producer`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kNameAttr = "top.name";
    static constexpr ::llvm::StringLiteral kOutputsAttr = "top.outputs";
    static constexpr ::llvm::StringLiteral kPreprocessAttr = "top.preprocess";
    static constexpr ::llvm::StringLiteral kWeightFileAttr = "top.weight_file";
    static constexpr ::llvm::StringLiteral kWeightHashAttr = "top.weight_hash";
    static constexpr ::llvm::StringLiteral kModelNameAttr = "top.model_name";

    /// Returns the store to which all `top.weight` ops of this context refer (see WeightStore.h).
    WeightStore &getWeightStore() { return *weightStore; }

  private:
    // Each family registers its ops next to its generated definitions, so that it can be compiled alone.
    void registerAttributes();
    void registerConstOps();
    void registerElementwiseOps();
    void registerConvOps();
    void registerReduceOps();
    void registerShapeOps();

    std::shared_ptr<WeightStore> weightStore;
  }];
}

#endif // TOP_DIALECT
