//===- TopInterfaces.td - Interfaces of Top ops -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_INTERFACES
#define TOP_INTERFACES

include "mlir/IR/OpBase.td"

def ShapeInterface : OpInterface<"ShapeInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{
    Infers result types from operand types, attributes and constant operands. The inference is also the op's verifier:
    it checks the numbered constraints of the op. The verifier of this interface then compares the declared result
    types with the inferred ones (a `?` is compatible with any size).
  }];
  let verifyWithRegions = 1;
  let verify = [{ return detail::verifyInferredTypes($_op); }];
  let methods = [
    InterfaceMethod<[{
      Appends one type per result, with `?` dims if they depend on `?` dims of operands. Emits an error at the op (what,
      actual versus allowed) and returns failure if the operands are inconsistent. Implementations must not read the
      types of the results: the importer creates an op with placeholder types before it calls this method.
      }], "::llvm::LogicalResult", "inferShapes",
      (ins "::llvm::SmallVectorImpl<::mlir::RankedTensorType> &":$types)>,
  ];
}

def ReferenceInterface : OpInterface<"ReferenceInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{The slow, obvious evaluation of an op, with which tests compare every other one.}];
  let methods = [
    InterfaceMethod<[{
      Computes the results from the operands. `outputs` are allocated with the static result types; the evaluator takes
      dims that are `?` in the op's type from the inputs. `inputs` does not contain absent optional operands; use the
      op's operand accessors to map them. Emits an error at the op on failure.
      }], "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<const ::tessera::top::HostTensor *>":$inputs,
           "::llvm::MutableArrayRef<::tessera::top::HostTensor>":$outputs)>,
  ];
}

def ScalarInterface : OpInterface<"ScalarInterface"> {
  let cppNamespace = "::tessera::top";
  let description = [{
    Marks elementwise ops: result element = f(operand elements), and operands broadcast as in numpy.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits f with arith and math ops on scalars, or on vectors: only elementwise-mappable ops may be used. `operands`
      have the operand element types and the returned value has the result element type, both with signless integers.
      The types of the op's own operands determine signed or unsigned semantics.
      }], "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>,
  ];
}

#endif // TOP_INTERFACES
