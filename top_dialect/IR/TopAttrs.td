//===- TopAttrs.td - Sizes as expressions ----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_ATTRS
#define TOP_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/TensorEncoding.td"
include "top_dialect/IR/SizesInterface.td"
include "top_dialect/IR/TopDialect.td"

class Top_Attr<string name, list<Trait> traits = []> : AttrDef<Top_Dialect, name, traits>;

def Top_SizeSymbolAttr : Top_Attr<"SizeSymbol"> {
  let mnemonic = "size_symbol";
  let summary = "A size that is known at run time only";
  let description = [{
    A number from `min` to `max`; decisions that need one number use `likely`. Written `name[min:max]` within a size, or
    `name[min:max:likely]` if `likely` is not `max`. Symbols with equal names are the same size.
    (C1) 0 <= min <= likely <= max.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$min, "int64_t":$max, "int64_t":$likely);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Top_SizeOperationAttr : Top_Attr<"SizeOperation"> {
  let mnemonic = "size_operation";
  let summary = "A function of sizes that is not a polynomial";
  let description = [{`floordiv(lhs, rhs)`, `min(lhs, rhs)` or `max(lhs, rhs)`. Created by the functions of Sizes.h alone.}];
  let parameters = (ins "::tessera::top::SizeFunction":$function, "::tessera::top::SizeAttr":$lhs,
                        "::tessera::top::SizeAttr":$rhs);
  let hasCustomAssemblyFormat = 1;
}

def Top_SizeAttr : Top_Attr<"Size"> {
  let mnemonic = "size";
  let summary = "A size as a polynomial of symbols";
  let description = [{
    The sum of `coefficients[i] * monomials[i]`. A monomial is a sorted array of atoms (`#top.size_symbol`,
    `#top.size_operation`), possibly empty. Terms are sorted and no coefficient is 0, so that equal polynomials are the
    same attribute. Example: `#top.size<32*h[1:40] - 1>`. Created by the functions of Sizes.h alone.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$coefficients, ArrayRefParameter<"::mlir::ArrayAttr">:$monomials);
  let hasCustomAssemblyFormat = 1;
}

def Top_DimsAttr : Top_Attr<"Dims", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
                                     DeclareAttrInterfaceMethods<SizesInterface, ["withSizes"]>]> {
  let mnemonic = "dims";
  let summary = "The sizes of a row-major tensor";
  let description = [{
    One size per dim, `?` for an unknown one: `tensor<?x3xf32, #top.dims<[batch[1:8], 3]>>`. Tensors without a symbolic
    size have no encoding. (C1) One size per dim. (C2) A size is a number where the type states it, and the same number.
    (C3) One size is symbolic.
  }];
  let parameters = (ins ArrayRefParameter<"::tessera::top::SizeAttr">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

#endif // TOP_ATTRS
