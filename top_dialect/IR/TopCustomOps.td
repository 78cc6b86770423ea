//===- TopCustomOps.td - Operators outside Tessera -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_CUSTOM_OPS
#define TOP_CUSTOM_OPS

include "top_dialect/IR/TopBase.td"

def Top_CustomOp : Top_Op<"custom"> {
  let summary = "Operator that is not part of Tessera";
  let description = [{
    An ONNX operator that a library of the user computes (CustomOperators.h). `opAttributes` is a JSON object with the
    node's attributes. `types` are the types of the results, as the operator's shape rule gave them during import: a
    module can be read without the library. (C1) `types` has one tensor type for each result, whose sizes are numbers or expressions.
    (C2) If the operator is registered in this process, its shape rule gives `types`.
  }];
  let arguments = (ins Variadic<Top_Tensor>:$inputs, StrAttr:$opDomain, StrAttr:$opName, I64Attr:$opVersion,
                       StrAttr:$opAttributes, TypeArrayAttr:$types);
  let results = (outs Variadic<Top_Tensor>:$outputs);
}

#endif // TOP_CUSTOM_OPS
