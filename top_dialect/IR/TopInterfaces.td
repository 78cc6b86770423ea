//===- TopInterfaces.td - What a Top op can answer -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_INTERFACES
#define TOP_INTERFACES

include "mlir/IR/OpBase.td"

def ShapeInterface : OpInterface<"ShapeInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{
    Infers result types from operand types, attributes and constant operands. The inference is also the
    op's verifier: it checks the numbered constraints of the op, and the verifier of this interface then
    compares the declared result types with the inferred ones (a `?` is compatible with any size).
  }];
  let verifyWithRegions = 1;
  let verify = [{ return detail::verifyInferredTypes($_op); }];
  let methods = [
    InterfaceMethod<[{
        Appends one type per result. `?` dims where the operands' are `?`. On inconsistent operands
        it emits an error at the op (what, actual versus allowed) and returns failure.
        The types of the results themselves must not be read: the importer creates an op with
        placeholder types, then asks this.
      }], "::llvm::LogicalResult", "inferShapes",
      (ins "::llvm::SmallVectorImpl<::mlir::RankedTensorType> &":$types)>,
  ];
}

def ReferenceInterface : OpInterface<"ReferenceInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{The slow, obvious evaluation of an op: the golden of every test.}];
  let methods = [
    InterfaceMethod<[{
        Computes the results from the operands. `outputs` come allocated with the static result
        types (dims that the op's type leaves `?` are taken from the inputs by the evaluator).
        Absent optional operands are not in `inputs`; use the op's operand accessors to map.
        Failure emits an error at the op.
      }], "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<const ::tessera::top::HostTensor *>":$inputs,
           "::llvm::MutableArrayRef<::tessera::top::HostTensor>":$outputs)>,
  ];
}

def ScalarInterface : OpInterface<"ScalarInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{
    Elementwise op: result element = f(operand elements), operands broadcast as in numpy.
  }];
  let methods = [
    InterfaceMethod<[{
        Emits f with arith/math ops on scalars (or vectors: only elementwise-mappable ops may be
        used). `operands` have the operand element types, the value returned has the result element
        type, integers without sign in both; signed or unsigned semantics come from the types of the
        op's own operands.
      }], "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>,
  ];
}

#endif // TOP_INTERFACES
