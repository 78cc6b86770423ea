//===- Passes.td - Quantisation passes on Top ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef QUANT_PASSES
#define QUANT_PASSES

include "mlir/Pass/PassBase.td"

def AssignPrecisionPass : Pass<"assign-precision", "::mlir::ModuleOp"> {
  let summary = "Decide in which precision every op is computed";
  let description = [{
    Before: a float function @main after the Top pipeline. After: each op that computes floats states its precision and
    the reason. All decisions about precisions are made here; `apply-precision` and its parts only read them.
    ```
    func.func @main(%x: tensor<1x2x4x4xf32> {top.stores = "INT16"}) attributes {top.precision = "INT8"}
    %y = top.conv %x, %w {top.precision = "INT16", top.precision_reason = "the calibration table says int16"}
    %z = top.softmax %y  {top.precision = "F32", top.precision_reason = "top.softmax has no integer form"}
    ```
    - `top.precision` of the function is the precision requested for ops that the quantise table does not list.
      `top.precision_requested` of an op is that of its line in the table.
    - An op is INT8 or INT16 if it reads i8 or i16, or belongs to the epilogue of such an op. It stays F32 if the
      quantise table says so, or if a tensor that needs a range is not in the calibration table. Convolutions and
      matmuls of a model with quantize and dequantize ops are INT8.
    - Integer ops exchange i8, other ops store their results in their own precision. `top.stores` lists the exceptions:
      i16 tensors, f32 results of BF16 ops in which 8 bits alone change the outputs by more than 5 %, and 16-bit results
      of convolutions that compute in f32 because they sum fewer than 64 products (BF16) or at most 32 (F16).
    - An op stays F32 instead of F16 if it has a constant above 65504, the largest f16, or if the calibration table
      lists a larger result.
    - W4 becomes W8 for tables, for the last contraction, for convolutions with fewer than 16 input channels, and where
      the calibration says so.

    A user may edit the attributes. On a function that has them, the pass only checks them: an op that cannot have its
    precision is an error. If the calibration table has channel factors, the pass divides the channels by them and
    records them as `top.channel_factors` of the function.
  }];
  let options = [
    Option<"calibrationTable", "calibration-table", "std::string", /*default=*/"",
           "NAME_cali.json from run_calibration; optional if no op is INT8">,
    Option<"quantizeTable", "quantize-table", "std::string", /*default=*/"", "NAME_qtable.json; optional">,
    Option<"precision", "precision", "std::string", /*default=*/"\"INT8\"",
           "Precision of ops that the quantise table does not name">,
    Option<"groupSize", "group-size", "int64_t", /*default=*/"32",
           "Number of products along the sum that share a scale in W4; a multiple of 16">,
  ];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

def ApplyPrecisionPass : Pass<"apply-precision", "::mlir::ModuleOp"> {
  let summary = "Quantise a function as its precisions say, with the ranges of a calibration table";
  let description = [{
    Before: a function after `assign-precision`. After: the attributes are gone, and the function does what they said.
    The weights of integer conv, conv_transpose and matmul are dequantised i8 constants with one scale per output
    channel. The tensors that these ops read, and tensors between them, become pairs of quantize and dequantize in i8.
    ```
    %y = top.conv %x, %w        ==>   %xq = quantize(%x) ; %xd = dequantize(%xq) ; %wd = dequantize(%w_i8)
                                      %y = top.conv %xd, %wd
    ```
    A result that only an elementwise op reads stays float: that op becomes the epilogue, which computes in float
    anyway. Results of reshape, transpose, slice, gather, max_pool, pad, tile, expand, nearest resize, and of reduce
    with max or min, have the same quantisation parameters as their input, because these ops only move integers.
    concat gives all its inputs one range. A remark states why an op stays float.

    A contraction whose result has `weight_terms` 2 in the calibration table gets a second contraction of the same
    input. Its weights are the rounding error of the first weights; its i16 result is added in the epilogue of the
    first.
    ```
    %y = top.conv %x, %w        ==>   %rd = dequantize(quantize(conv(%xd, dequantize(%rest_i8))) : i16)
                                      %y = top.add(top.conv(%xd, %wd), %rd)
    ```

    Ops of precision BF16 or F16 hold their weights and their stored results in 16 bits: weights as constants of the
    type cast to f32, results as pairs of casts. The ops themselves compute on f32. Outputs of the network are not
    rounded, and inputs only to bf16, if all their readers are convolutions in bf16. A result is not rounded either if
    no op that benefits from 16 bits reads it, directly or after moves.
    ```
    %y = top.conv %x, %w        ==>   %wd = cast(%w_bf16) ; %y = top.conv %x, %wd
                                      %yn = cast(%y) : bf16 ; %yd = cast(%yn) : f32
    ```
    Ops of precision W8 or W4 compute on f32 with weights that are dequantised i8 constants. This applies to
    convolutions, matmuls with one constant matrix, and tables from which rows are gathered. W8 has one scale per
    output channel (per row of a table). W4 has integers from -8 to 7 and one scale per channel and `group-size`
    products along the sum; in a convolution a group consists of whole blocks of 16 input channels with all taps.
    Tables use W8 in both.
    ```
    %y = top.matmul %x, %w      ==>   %wd = dequantize(%w_i4 : [K/32, 32, N], %scales : [K/32, 1, N])
                                      %y = top.matmul %x, reshape(%wd)
    ```
    A matmul of precision W8A8 or W4A8 becomes top.block_matmul. Its weights are rounded in groups as in W4, with scales
    that are f16 numbers; weights that are dequantised integers already keep their bits.
    A matmul of precision DYNAMIC_INT8 with one constant matrix has i8 weights with one scale per column. Its other
    operand is quantised at run time: each row becomes u8 by its own minimum and maximum (0 included), with a scale
    and a zero point of shape [.., M, 1], as ONNX's DynamicQuantizeLinear quantises a whole tensor. The sums are
    exact; bias and activation stay f32.
    ```
    %y = top.matmul %x, %w      ==>   %s, %z = .. reduce min, max of %x ; %q = quantize(%x, %s, %z) : ui8
                                      %p = top.matmul (i32(%q) - i32(%z)), i32(%w_i8) ; %y = f32(%p) * %w_scales * %s
    ```
  }];
  let options = [
    Option<"calibrationTable", "calibration-table", "std::string", /*default=*/"",
           "NAME_cali.json from run_calibration; optional if no op is INT8">,
    Option<"quantInputs", "quant-inputs", "bool", /*default=*/"false",
           "Turn inputs that integer ops read into integers">,
    Option<"quantOutputs", "quant-outputs", "bool", /*default=*/"false", "Turn f32 outputs with a range into integers">,
    Option<"groupSize", "group-size", "int64_t", /*default=*/"32",
           "Number of products along the sum that share a scale in W4; a multiple of 16">,
  ];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

def IsolatePass : Pass<"top-isolate", "::mlir::func::FuncOp"> {
  let summary = "Turn tensors into arguments to measure each op's own error";
  let description = [{
    Separates an op's own rounding error from the error that it inherits. Each named float tensor becomes an argument,
    which its readers use instead, rounded like the tensor. The value that the op computes becomes a result.
    ```
    %q = quantize(%a) {top.outputs = ["a"]}        %own = dequantize(quantize(%a))   // returned as "a"
    %d = dequantize(%q)                       ==>  %d = dequantize(quantize(%given)) // argument "a"
    %b = top.relu %d                               %b = top.relu %d
    ```
  }];
  let dependentDialects = ["::tessera::top::TopDialect"];
}

def FusePreprocessPass : Pass<"top-fuse-preprocess", "::mlir::ModuleOp"> {
  let summary = "Turn inputs with a pre-processing record into u8 pixels";
  let description = [{
    Before: inputs of @main with `top.preprocess`, f32 [N, C, H, W] or [N, H, W, C]. After: the inputs are ui8 pixels
    from 0 to 255. The channel order and (x - mean) * scale are ops, and the record keeps the steps that are left to
    the caller.
    ```
    @main(%x: tensor<1x3x4x4xf32>)  ==>  @main(%p: tensor<1x4x4x3xui8>) ; %x = (f32(transpose(%p)) - mean) * scale
    ```
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"packed\"",
           "packed, planar, rgb_packed, rgb_planar, bgr_packed or bgr_planar; without rgb or bgr, the model's order">,
  ];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

#endif // QUANT_PASSES
