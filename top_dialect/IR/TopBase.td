//===- TopBase.td - Classes shared by the op families ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_BASE
#define TOP_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "top_dialect/IR/TopDialect.td"
include "top_dialect/IR/TopInterfaces.td"

def Top_Tensor : AnyTypeOf<[AnyRankedTensor]>;

// Base class of every Top op: pure, with shape inference and a reference evaluation.
class Top_Op<string mnemonic, list<Trait> traits = []>
    : Op<Top_Dialect, mnemonic,
         !listconcat(traits, [Pure, DeclareOpInterfaceMethods<ShapeInterface>,
                              DeclareOpInterfaceMethods<ReferenceInterface>])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// Elementwise op with numpy broadcasting. `resultElement` is a C++ expression for the result's element type. Operands
// from number `firstSame` on must have one element type. The constraints are C1: one element type, C2: dims broadcast.
// `scalar` is the body of emitScalar, given ScalarEmitter `e` and the first operand's scalar `x`. If it is empty,
// emitScalar is defined in a .cpp file.
class Top_ScalarOp<string mnemonic, list<Trait> traits = [],
                   string resultElement = "detail::elementOf(getOperation()->getOperand(0))", int firstSame = 0,
                   string scalar = "">
    : Top_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<ScalarInterface>])> {
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferShapes(::llvm::SmallVectorImpl<::mlir::RankedTensorType> &types) {
      return detail::inferElementwise(getOperation(), }] # resultElement # [{, }] # firstSame # [{, types);
    }
  }] # !if(!empty(scalar), "", [{
    ::mlir::Value $cppClass::emitScalar(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::ValueRange v) {
      detail::ScalarEmitter e(builder, loc, detail::isUnsignedElement(detail::elementOf(getOperation()->getOperand(0))));
      ::mlir::Value x = v[0];
      }] # scalar # [{
    }
  }]);
}

class Top_UnaryOp<string mnemonic, string what, string formula,
                  string resultElement = "detail::elementOf(getOperation()->getOperand(0))", string scalar = "">
    : Top_ScalarOp<mnemonic, [], resultElement, 0, scalar> {
  let summary = what;
  let description = "`y = " # formula # "`, elementwise.";
  let arguments = (ins Top_Tensor:$x);
  let results = (outs Top_Tensor:$y);
}

class Top_BinaryOp<string mnemonic, string what, string formula, int firstSame = 0>
    : Top_ScalarOp<mnemonic, [], "detail::elementOf(getOperation()->getOperand(0))", firstSame> {
  let summary = what;
  let description = "`y = " # formula # "`, elementwise; the operands broadcast as in numpy.";
  let arguments = (ins Top_Tensor:$a, Top_Tensor:$b);
  let results = (outs Top_Tensor:$y);
}

#endif // TOP_BASE
