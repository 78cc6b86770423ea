//===- DeviceComputeOps.td - Convolution, matmul, pool, map ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_COMPUTE_OPS
#define DEVICE_COMPUTE_OPS

include "device_dialect/IR/DeviceBase.td"
include "device_dialect/IR/DeviceAttrs.td"
include "device_dialect/IR/PackingInterface.td"
include "top_dialect/IR/TopAttrs.td"

def Device_ConvOp : Device_EpilogueOp<"conv", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<LayoutInterface>], ["canReadExtra"], ["countFlops", "countMacs"]> {
  let summary = "Grouped convolution with epilogue";
  let description = [{
    x [N, C, H, W], w [OC, C/groups, KH, KW], bias [OC] -> y [N, OC, OH, OW]; strides, dilations [2], pads [4]
    (begins, ends). Rank 4 or 5 (3-D: [3], [6]); 1-D convolutions arrive as 2-D. Transposed ones arrive as a
    spread copy and a convolution. The accumulator starts with the bias.
    `packing`: w is not in its logical shape but in the order that a family's kernel reads, described by this attribute.
    Floats: x and w are each f32, f16 or bf16; sums and bias are f32.
    Integers: x i8, ui8 or i16, w i8, bias i32 are summed exactly in i32. `padValue` is the value of padding positions
    of an integer x (its zero point), so that quantised zeros only add what the bias subtracts again.
    Integer weights of a float x: w i8 and `scales` f32 [ceil(C/groups / weightGroup), OC], one scale for `weightGroup`
    input channels each; the factor is f32(w) times its scale. Packed weights do not have `scales`: theirs are in the
    epilogue or where the packing puts them.
    (C1) ranks. (C2) geometry entries. (C3) groups divides C and OC. (C4) bias [OC]. (C5) result dims.
    (C6) the packing verifies that it fits. (C7) epilogue as EpilogueInterface requires. (C8) element types: all equal
    to x's, or the floats or integers above. (C9) the i32 sum of C/groups * KH * KW products of the types' largest
    values cannot overflow (the constant bias of a quantised model is checked where it is computed), or `sumBound`, an
    upper bound on the magnitude of any sum for the actual values of x and w, is below 2^31. (C10) padValue is a value
    of an 8-bit x. (C11) scales and weightGroup as above.
  }];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$w, Optional<Device_Tensor>:$bias, Variadic<Device_Tensor>:$extras,
      Optional<Device_Tensor>:$scales, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups,
      OptionalAttr<Device_PackingAttr>:$packing, DefaultValuedAttr<I64Attr, "0">:$padValue, OptionalAttr<I64Attr>:$sumBound,
      DefaultValuedAttr<I64Attr, "0">:$weightGroup);
  let results = (outs Device_Tensor:$y);
  let extraClassDeclaration = [{
    /// Returns the dims of the weights before any packing.
    ::llvm::ArrayRef<int64_t> getWeightShape();
  }];
  let assemblyFormat = [{
    $x `,` $w (`scales` $scales^)? (`bias` $bias^)? (`extras` `(` $extras^ `)`)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Device_MatMulOp : Device_EpilogueOp<"matmul", [AttrSizedOperandSegments], ["canReadExtra"], ["countFlops", "countMacs"]> {
  let summary = "Batched matmul with epilogue";
  let description = [{
    a [B..., M, K] x b [B..., K, N] -> y [B..., M, N]; leading dims broadcast as in numpy; trans flags swap the last two
    dims. bias [N] starts the accumulator. `packing`: b is a constant in the order that a family's kernel reads.
    Floats: a and b are each f32, f16 or bf16; sums and bias are f32. Integers: a i8, ui8 or i16, b i8, bias i32 are
    summed exactly in i32. Integer weights of a float a: b i8 of one matrix and `scales` f32 [ceil(K / weightGroup), N],
    as for conv.
    (C1) rank at least 2. (C2) K agrees. (C3) batch dims broadcast. (C4) bias [N]. (C5) result dims. (C6) the packing
    verifies that it fits. (C7) epilogue as EpilogueInterface requires. (C8) element types: all equal to a's, or the
    floats or integers above. (C9) the i32 sum of K products of the types' largest values cannot overflow, or `sumBound`
    as for conv. (C10) scales and weightGroup as above.
  }];
  let arguments = (ins Device_Tensor:$a, Device_Tensor:$b, Optional<Device_Tensor>:$bias, Variadic<Device_Tensor>:$extras,
      Optional<Device_Tensor>:$scales,
      DefaultValuedAttr<BoolAttr, "false">:$transA, DefaultValuedAttr<BoolAttr, "false">:$transB, OptionalAttr<Device_PackingAttr>:$packing,
      OptionalAttr<I64Attr>:$sumBound, DefaultValuedAttr<I64Attr, "0">:$weightGroup);
  let results = (outs Device_Tensor:$y);
  let extraClassDeclaration = [{
    /// Returns the dims of the weights before any packing.
    ::llvm::ArrayRef<int64_t> getWeightShape();
  }];
  let assemblyFormat = [{
    $a `,` $b (`scales` $scales^)? (`bias` $bias^)? (`extras` `(` $extras^ `)`)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Device_PoolKind : I32EnumAttr<"PoolKind", "kind of pooling", [I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"avg", 1>]> {
  let cppNamespace = "::tessera::device";
}
def Device_PoolOp : Device_EpilogueOp<"pool", [DeclareOpInterfaceMethods<LayoutInterface>], [], ["countFlops"]> {
  let summary = "Maximum or mean over windows, with epilogue";
  let description = [{
    x [N, C, H, W] (rank 4 or 5); the result dims already account for ceil modes: windows may reach beyond the end
    padding. Padding never wins a maximum. The divisor of a mean counts the positions inside x, or inside the padded x
    when `countIncludePad`.
    (C1) rank. (C2) geometry entries. (C3) every window holds a position of x (max) or has a positive divisor (mean).
    (C4) N and C agree, result dims are positive. (C5) epilogue as EpilogueInterface requires.
  }];
  let arguments = (ins Device_Tensor:$x, Variadic<Device_Tensor>:$extras, Device_PoolKind:$kind, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$countIncludePad);
  let results = (outs Device_Tensor:$y);
  let assemblyFormat = [{
    $kind $x (`extras` `(` $extras^ `)`)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Device_MapOp : Device_Op<"map", [SingleBlock, IsolatedFromAbove, DeclareOpInterfaceMethods<LayoutInterface>]> {
  let summary = "Elementwise computation by a scalar region";
  let description = [{
    y[i] = body(inputs[i]...), operands broadcast to y as in numpy (same rank or lower, right-aligned).
    The block has one argument per operand, of its scalar type (the element type, integers without sign);
    it ends with device.yield of y's. (C1) operands broadcast to the result. (C2) block arguments and yield match the
    element types. (C3) only elementwise-mappable ops and constants in the body.
  }];
  let arguments = (ins Variadic<Device_Tensor>:$inputs);
  let results = (outs Device_Tensor:$y);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`(` $inputs^ `)`)? $body attr-dict `:` functional-type(operands, results)";
}

def Device_LutOp : Device_Op<"lut", [DeclareOpInterfaceMethods<LayoutInterface>]> {
  let summary = "Table lookup by byte";
  let description = [{
    y[i] = table[the bits of x[i] as a number from 0 to 255]; if there is a table per channel (dim 1), that of i's
    channel.
    (C1) elements of x and y are i8 or ui8. (C2) table: 256 elements of y's type, or [C, 256] if x has four dims with C
    channels. (C3) x and y have the same dims.
  }];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$table);
  let results = (outs Device_Tensor:$y);
  let extraClassDeclaration = [{
    /// Returns true if each channel has its own table.
    bool hasTablePerChannel() { return ::mlir::cast<::mlir::RankedTensorType>(getTable().getType()).getRank() == 2; }
  }];
}

def Device_YieldOp : Op<Device_Dialect, "yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Ends a scalar region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Device_ReduceKind : I32EnumAttr<"ReduceKind", "kind of reduction", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"prod", 3>]> {
  let cppNamespace = "::tessera::device";
}
def Device_ReduceOp : Device_EpilogueOp<"reduce", [DeclareOpInterfaceMethods<LayoutInterface>], [], ["countFlops"]> {
  let summary = "Reduction over axes, with an element function before and an epilogue after";
  let description = [{
    y = epilogue(reduce over `axes` of prologue(x)). Reduced dims are kept as 1 (a reshape drops them). The prologue
    region has one argument of x's element type and yields the accumulated type; empty = identity. A mean is a sum whose
    epilogue multiplies by 1/n; sum of squares, l1, log-sum-exp use prologues. (C1) axes sorted, unique, in rank. (C2)
    result dims. (C3) regions match.
  }];
  let arguments = (ins Device_Tensor:$x, Variadic<Device_Tensor>:$extras, Device_ReduceKind:$kind, DenseI64ArrayAttr:$axes);
  let results = (outs Device_Tensor:$y);
  let regions = (region AnyRegion:$prologue, AnyRegion:$epilogue);
  let assemblyFormat = [{
    $kind $x (`extras` `(` $extras^ `)`)? (`prologue` $prologue^)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Device_SoftmaxOp : Device_Op<"softmax"> {
  let summary = "Softmax or its logarithm along one axis";
  let description = "(C1) axis in rank. (C2) same shape and element type in and out, a float.";
  let arguments = (ins Device_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$log);
  let results = (outs Device_Tensor:$y);
}

def Device_NormOp : Device_EpilogueOp<"norm", [AttrSizedOperandSegments], ["canReadExtra"], ["countFlops"]> {
  let summary = "Layer or RMS normalisation over the trailing dims";
  let description = [{
    As top.layer_norm: over dims axis..rank-1, with scale and bias of those dims. (C1) axis in rank. (C2) scale, bias
    dims. (C3) same shape in and out; elements are floats, but an epilogue may yield another type. (C4) epilogue as
    EpilogueInterface requires, without extra operands.
  }];
  let arguments = (ins Device_Tensor:$x, Optional<Device_Tensor>:$scale, Optional<Device_Tensor>:$bias, I64Attr:$axis, F64Attr:$epsilon,
      DefaultValuedAttr<BoolAttr, "false">:$rms);
  let results = (outs Device_Tensor:$y);
  let assemblyFormat = "$x (`scale` $scale^)? (`bias` $bias^)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)";
}

def Device_AttentionOp : Device_EpilogueOp<"attention", [], ["canReadExtra"], ["countFlops", "countMacs"]> {
  let summary = "softmax(scale q k^T + mask) v";
  let description = [{
    As top.attention, on the matrices that `views` select from the operands and the result: for q, k and v, the region
    by which a copy would build the matrix; for y, the region by which a copy of the matrix would build the result.
    Without
    `views`, the tensors themselves.
    (C1) E and T agree. (C2) ranks. (C3) leading dims and mask broadcast to q's. (C4) result dims. (C5) four views;
    those of q, k and v lie within their operands and fill their matrices, y's covers all of y and only permutes dims;
    elements of a row are contiguous. (C6) epilogue as EpilogueInterface requires, without extra operands.

    With `levels` and `valueScale`, q, k and v are i8 and both contractions are exact integer sums; everything else is
    f32 with one rounding per operation: score = f32(sum q k) scale + mask, u = round(e^(score - largest of the row)
    levels), halves to even, y = f32(sum u v) (valueScale / f32(sum u)). A NaN that is rounded becomes 0.
    (C7) both attributes are present exactly if q, k and v are i8, with an f32 mask; levels are 1 to 255. (C8) sums fit
    i32, and sums of u are exact in f32.

    `keys`: only so many of the first rows of k and v take part; the tensors have space for more. (C9) not with `views`;
    k and v have at least so many rows.
  }];
  let assemblyFormat = "operands (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)";
  let arguments = (ins Device_Tensor:$q, Device_Tensor:$k, Device_Tensor:$v, Optional<Device_Tensor>:$mask, F64Attr:$scale,
      OptionalAttr<Device_PieceArrayAttr>:$views, OptionalAttr<I64Attr>:$levels, OptionalAttr<F64Attr>:$valueScale, OptionalAttr<Top_SizeAttr>:$keys);
  let results = (outs Device_Tensor:$y);
  let extraClassDeclaration = [{
    /// A stack of matrices in the last two dims; element i is at |offset| + the sum of |strides| times i, in elements.
    struct View {
      ::llvm::SmallVector<int64_t> sizes, strides;
      int64_t offset = 0;
    };
    /// Returns the view of q, k, v (0, 1, 2) or y (3). A view with a symbolic size has no strides, because they are not
    /// numbers; its shape holds `?` for that size.
    View view(unsigned index);
    /// Returns the sizes of the view, which may be symbolic.
    ::llvm::SmallVector<::tessera::Dim> viewSizes(unsigned index);
    /// Returns true if q, k and v are integers.
    bool isOfIntegers() { return getLevels().has_value(); }
    /// Return the largest numbers of keys and depth for which sums of products fit i32.
    static int64_t mostKeys(int64_t levels);
    static int64_t mostDepth();
  }];
}

def Device_RecurrentOp : Device_Op<"recurrent", [AttrSizedOperandSegments], ["countFlops", "countMacs"]> {
  let summary = "RNN, GRU or LSTM over a sequence";
  let description = [{
    Operands, results and attributes as top.rnn (kind and direction by name). Without w, x [steps, batch, directions *
    gates * hidden] holds what the inputs contribute to the gates, including their biases, and bias [directions, gates *
    hidden] is that of the state only. `packing`: r is a constant in the order that a family's kernel reads; only
    without w.
    (C1) shapes as top.rnn, or as above. (C2) kind and direction known. (C3) activations known, as many as the kind
    needs. (C4) the packing verifies that it fits, and w is absent.
  }];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$r, Optional<Device_Tensor>:$w, Optional<Device_Tensor>:$bias, Optional<Device_Tensor>:$sequenceLens,
      Optional<Device_Tensor>:$initialH, Optional<Device_Tensor>:$initialC, Optional<Device_Tensor>:$peephole,
      StrAttr:$kind, StrAttr:$direction, I64Attr:$hiddenSize, StrArrayAttr:$activations,
      DefaultValuedAttr<F64Attr, "0.0">:$clip, DefaultValuedAttr<BoolAttr, "false">:$linearBeforeReset,
      OptionalAttr<Device_PackingAttr>:$packing);
  let results = (outs Device_Tensor:$y, Device_Tensor:$yH, Device_Tensor:$yC);
  let extraClassDeclaration = [{
    int64_t getNumDirections() { return getDirection() == "bidirectional" ? 2 : 1; }
    int64_t getNumGates() { return getKind() == "lstm" ? 4 : getKind() == "gru" ? 3 : 1; }
  }];
  let assemblyFormat = [{
    $x `,` $r (`w` $w^)? (`bias` $bias^)? (`lens` $sequenceLens^)? (`h` $initialH^)? (`c` $initialC^)? (`peephole` $peephole^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DEVICE_COMPUTE_OPS
