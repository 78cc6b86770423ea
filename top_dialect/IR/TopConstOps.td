//===- TopConstOps.td - Constants and control flow -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_CONST_OPS
#define TOP_CONST_OPS

include "top_dialect/IR/TopBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Top_ConstantOp : Op<Top_Dialect, "constant", [Pure, ConstantLike]> {
  let summary = "Small constant, printed in the module";
  let description = [{
    Holds shapes, scalars and small tables. (C1) The value has the result's type. (C2) The value has at most 1 KiB;
    use `top.weight` for larger constants.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Top_Tensor:$y);
  let assemblyFormat = "$value attr-dict `:` type($y)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Top_WeightOp : Op<Top_Dialect, "weight", [Pure]> {
  let summary = "Constant held in the weight store";
  let description = [{
    Refers to the tensor `key` of the module's weight file. Type and byte count are checked when the module is loaded.
    The op is not `ConstantLike`: its data never becomes an attribute.
  }];
  let arguments = (ins StrAttr:$key);
  let results = (outs Top_Tensor:$y);
  let assemblyFormat = "$key attr-dict `:` type($y)";
}

def Top_YieldOp : Op<Top_Dialect, "yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Terminates a region and returns its values";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Top_IfOp : Top_Op<"if", [SingleBlock, NoRegionArguments]> {
  let summary = "Runs one of two regions";
  let description = [{
    `cond` is a one-element i1 tensor. The results are those of the region that runs. (C1) Both regions yield values of
    the same count, ranks and element types; dims that differ become `?`. (C2) The condition is one i1.
  }];
  let arguments = (ins Top_Tensor:$cond);
  let results = (outs Variadic<Top_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$thenRegion, SizedRegion<1>:$elseRegion);
  let assemblyFormat = "$cond $thenRegion `else` $elseRegion attr-dict `:` functional-type(operands, results)";
}

def Top_LoopOp : Top_Op<"loop", [SingleBlock, AttrSizedOperandSegments]> {
  let summary = "ONNX Loop: trip count, condition, carried and scanned values";
  let description = [{
    The body takes (i64 iteration, i1 condition, carried...) and yields (i1 condition, carried..., scanned...).
    Scanned values are stacked along a new leading dim. (C1) Carried yields match the initial values in number, rank
    and element type. (C2) The body takes the iteration, the condition and the carried values. (C3) The condition is
    one i1.
  }];
  let arguments = (ins Optional<Top_Tensor>:$tripCount, Optional<Top_Tensor>:$cond, Variadic<Top_Tensor>:$init);
  let results = (outs Variadic<Top_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`trip` $tripCount^)? (`while` $cond^)? (`init` `(` $init^ `)`)? $body attr-dict `:` functional-type(operands, results)";
}

#endif // TOP_CONST_OPS
