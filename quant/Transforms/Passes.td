//===- Passes.td - From a float Top module to integers ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef QUANT_PASSES
#define QUANT_PASSES

include "mlir/Pass/PassBase.td"

def QuantizePass : Pass<"top-quantize", "::mlir::ModuleOp"> {
  let summary = "Insert quantize and dequantize pairs by a calibration table";
  let description = [{
    Before: a float function @main after the Top pipeline.
    After: weights of conv, conv_transpose and matmul as i8 constants of one scale per output channel, dequantised; the
    tensors that those read, and what lies between them, as pairs of quantize and dequantize in i8.
    ```
    %y = top.conv %x, %w        ==>   %xq = quantize(%x) ; %xd = dequantize(%xq) ; %wd = dequantize(%w_i8)
                                      %y = top.conv %xd, %wd
    ```
    A result that only an elementwise op reads stays float: that op becomes the epilogue, which computes in float anyway.
    Outputs of reshape, transpose, slice, gather, max_pool, largest and smallest of a reduce, pad, tile, expand and nearest resize
    take the parameters of their input, concat gives all its inputs one range: they only move integers. What the quantise table names, or has no line in the
    calibration table, stays float; a remark at the op says why.

    A product whose result has `weight_terms` 2 in the calibration table gets a second one, of the same input, for what rounding
    leaves over of its weights; its i16 are added in the epilogue of the first.
    ```
    %y = top.conv %x, %w        ==>   %rd = dequantize(quantize(conv(%xd, dequantize(%rest_i8))) : i16)
                                      %y = top.add(top.conv(%xd, %wd), %rd)
    ```

    Ops of precision BF16 or F16 hold their weights and their stored results in 16 bits: weights as constants of the type,
    cast to f32; results as pairs of casts. Ops compute on f32, and the network's outputs are not rounded, inputs only to bf16 where convolutions alone read them, nor
    results of which, moved or not, nothing is computed that reads 16 bits. Convolutions that sum fewer than 64
    products (depthwise ones, first layers) have f32 weights and read f32. In BF16 a result that by the calibration table moves
    the outputs by more than 5 % with 8 bits alone is not rounded.
    ```
    %y = top.conv %x, %w        ==>   %wd = cast(%w_bf16) ; %y = top.conv %x, %wd
                                      %yn = cast(%y) : bf16 ; %yd = cast(%yn) : f32
    ```
    Ops of precision W8 or W4 - convolutions, products with one constant matrix, tables that rows are gathered from - compute
    on f32 with weights that are dequantised i8 constants: in W8 one scale per output channel (per row of a table), in W4
    integers from -8 to 7 and one scale per channel and `group-size` products along the sum (of a convolution: whole blocks of
    16 input channels, with all taps); tables keep W8.
    ```
    %y = top.matmul %x, %w      ==>   %wd = dequantize(%w_i4 : [K/32, 32, N], %scales : [K/32, 1, N])
                                      %y = top.matmul %x, reshape(%wd)
    ```
    A matmul of precision DYNAMIC_INT8 with one constant matrix has i8 weights of a scale per column, and its other operand is
    quantised as it comes: each row, [.., M, 1], to u8 by its own least and largest value, 0 included, as ONNX's DynamicQuantizeLinear
    does with a tensor. The sums are exact; bias and activation stay f32.
    ```
    %y = top.matmul %x, %w      ==>   %s, %z = .. reduce min, max of %x ; %q = quantize(%x, %s, %z) : ui8
                                      %p = top.matmul (i32(%q) - i32(%z)), i32(%w_i8) ; %y = f32(%p) * %w_scales * %s
    ```
    F16 ends at 65504: an op with a larger constant, or a result that the calibration table says is larger, stays f32.
  }];
  let options = [
    Option<"calibrationTable", "calibration-table", "std::string", /*default=*/"", "NAME_cali.json of run_calibration; may be absent where nothing is to be INT8">,
    Option<"quantizeTable", "quantize-table", "std::string", /*default=*/"", "NAME_qtable.json, may be absent">,
    Option<"quantInputs", "quant-inputs", "bool", /*default=*/"false", "Inputs that integer ops read become integers">,
    Option<"quantOutputs", "quant-outputs", "bool", /*default=*/"false", "f32 outputs with a range become integers">,
    Option<"precision", "precision", "std::string", /*default=*/"\"INT8\"", "Of ops that the quantise table does not name">,
    Option<"groupSize", "group-size", "int64_t", /*default=*/"32", "Products that share a scale in W4">,
  ];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

def IsolatePass : Pass<"top-isolate", "::mlir::func::FuncOp"> {
  let summary = "Let every op read given tensors, and return what it makes of them";
  let description = [{
    For telling an op's own rounding error from the one that it inherits: each named float tensor becomes an argument that
    its readers get instead, rounded as the tensor is, and the op's own value becomes a result.
    ```
    %q = quantize(%a) {top.outputs = ["a"]}        %own = dequantize(quantize(%a))   // returned as "a"
    %d = dequantize(%q)                       ==>  %d = dequantize(quantize(%given)) // argument "a"
    %b = top.relu %d                               %b = top.relu %d
    ```
  }];
  let dependentDialects = ["::tessera::top::TopDialect"];
}

def FusePreprocessPass : Pass<"top-fuse-preprocess", "::mlir::ModuleOp"> {
  let summary = "Make u8 pixels the inputs that have a record of pre-processing";
  let description = [{
    Before: inputs of @main with `top.preprocess`, f32 [N, C, H, W] or [N, H, W, C].
    After: ui8 pixels of 0..255; the order of channels and (x - mean) * scale are ops, and the record says what is left.
    ```
    @main(%x: tensor<1x3x4x4xf32>)  ==>  @main(%p: tensor<1x4x4x3xui8>) ; %x = mul(sub(cast(transpose(%p)), mean), scale)
    ```
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"packed\"",
           "packed, planar, rgb_packed, rgb_planar, bgr_packed or bgr_planar; without an order: the model's">,
  ];
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

#endif // QUANT_PASSES
