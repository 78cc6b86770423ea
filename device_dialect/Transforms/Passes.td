//===- Passes.td - Passes on the device dialect ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_PASSES
#define DEVICE_PASSES

include "mlir/Pass/PassBase.td"

def UpdateStatesPass : Pass<"device-update-states", "::mlir::func::FuncOp"> {
  let summary = "Append to growing states and scatter into states in place";
  let description = [{
    Before: an argument of the state's indices before a run and a `device.copy` that concatenates them and new ones, or a
    `device.scatter` into an argument; the result is the state after the run. After: the argument has space for
    the longest state, `device.insert` or the scatter writes into it, and the state has no result. Attention whose keys and values
    are such states reads them in place; other readers take a copy of the indices in use.

    A growing state that the function does not append to in this form is an error that names the state.
  }];
  let statistics = [Statistic<"numUpdated", "num-updated", "States that are written in place">];
}

def SimplifyCopiesPass : Pass<"device-simplify-copies", "::mlir::func::FuncOp"> {
  let summary = "Compose copies of copies, turn copies that move nothing into views";
  let description = [{
    Before: one `device.copy` per copy of the network. After: a copy that reads another copy reads its sources instead
    (a slice of a concatenation, a transposition of a transposition, a padded slice), also through a reshape that only
    adds or drops dims of size 1; a copy that leaves every byte in its place is a `device.reshape`; reshapes of reshapes
    are one; copies without users are removed. With `through-reshapes`, copies of one source each are also composed
    through a reshape that splits or merges dims (windows of a shifted image): each rectangle of the finer dims becomes
    a piece, as long as the pieces cost less than the copy that they replace.

    A copy with several users is composed only if all of them are copies and it is a mere slice: a transposition is done
    only once. Composed copies have at most 64 pieces. Row-major tensors only. Copies that address assignment can elide
    (contiguous slices and parts of concatenations) stay copies.

    ```mlir
    %a = device.copy %x {pieces = [#device.piece<source = 0, sizes = [3, 2], ..., src_dims = [1, 0], ...>]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %b = device.copy %a {pieces = [#device.piece<source = 0, sizes = [2, 3], ..., src_dims = [1, 0], ...>]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    // %b becomes %x
    ```
  }];
  let options = [Option<"throughReshapes", "through-reshapes", "bool", "false", "Also compose through reshapes that split or merge dims">];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numComposed", "composed-copies", "Copies that were composed with others">,
                    Statistic<"numViews", "views", "Copies that became reshapes">,
                    Statistic<"numRemoved", "removed-moves", "Copies without users that were removed">];
}

def FormTablesPass : Pass<"device-form-tables", "::mlir::func::FuncOp"> {
  let summary = "Turn functions of one byte into tables";
  let description = [{
    Before: every elementwise op is a `device.map`. After: maps with 8-bit results that depend, through any number of
    maps, only on one 8-bit tensor of the same dims and on constants of one element are a `device.lut`; the reference
    evaluation computes their 256 values. With `per-channel`, constants may also have one value per channel (dim 1 of
    four): each channel then gets its own table, if all tables together are smaller than a quarter of the tensor. Maps
    without other readers are removed. Dequantise, sigmoid, quantise is thus one lookup, and exact on every chip.

    ```mlir
    %y = device.map(%x) {
    ^bb0(%a: i8):
      %m = arith.maxsi ...
      device.yield %m : i8
    } : (tensor<1x16x8x8xi8>) -> tensor<1x16x8x8xi8>
    // becomes
    %table = top.constant dense<...> : tensor<256xi8>
    %y = device.lut %x, %table : (tensor<1x16x8x8xi8>, tensor<256xi8>) -> tensor<1x16x8x8xi8>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let options = [Option<"perChannel", "per-channel", "bool", "false", "Also form tables per channel">];
  let statistics = [Statistic<"numTables", "tables", "Maps replaced by tables">];
}

def FuseEpiloguesPass : Pass<"device-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Put elementwise maps into the epilogues of their producers, and maps into maps";
  let description = [{
    Before: every elementwise op is a `device.map`, tensors are row-major. After: a map that is the only user of a
    convolution, matmul, pool or reduction is the last part of that op's epilogue, and its other operands are extras; of
    several such producers the last one in the program takes the map, so a residual addition ends the longer branch. A
    map of the result's shape that has a single user, or is cheap and has only maps as users, is computed inside its
    users. A map after a reshape is computed on the dims before the reshape if its operands allow that. Dequantisations
    of bytes are inlined first into the maps that read them, so that epilogues read bytes.

    The fused op takes the map's place and name, and the locations of both; values that no longer exist lose their
    names. Nothing is computed more often than before except bodies of up to four cheap operations. Norms and attention
    take maps only with `into-rows`, which then does nothing else, because not every family has such kernels;
    `integer-attention` excludes float attention for families that support only the integer form.

    Not fused: operands that the producer's kernels cannot read beside their result (neither its shape, nor one value
    per channel or column, nor one value), results of another element type (except after integer sums), broadcasts of
    the producer, bodies that would grow beyond 64 operations, and ops that would get more than 8 operands.

    ```mlir
    %c = device.conv %x, %w {...} : (...) -> tensor<1x16x8x8xf32>
    %y = device.map(%c, %r) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      device.yield %s : f32
    } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    // becomes
    %y = device.conv %x, %w extras(%r) epilogue {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      device.yield %s : f32
    } {...} : (...) -> tensor<1x16x8x8xf32>
    ```
  }];
  let options = [Option<"intoRows", "into-rows", "bool", "false", "Only fuse maps that read results of norms and attention">,
                 Option<"integerAttention", "integer-attention", "bool", "false",
                        "Of attention ops, only integer ones take maps">];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numEpilogues", "fused-epilogues", "Maps that became part of an epilogue">,
                    Statistic<"numMaps", "fused-maps", "Maps that were inlined into a reader">];
}

def AssignAddressesPass : Pass<"device-assign-addresses", "::mlir::func::FuncOp"> {
  let summary = "Assign an address in the workspace or in a caller's memory to every result";
  let description = [{
    Before: device ops in their final order and layouts, without addresses; the order of the ops is the order of
    execution. After: `device.addresses` and `device.memories` on every op with non-constant results,
    `device.workspace_bytes` and `device.workspace_lower_bound` (largest sum of bytes needed at one step) on the
    function. All addresses are multiples of 64, except for parts of a concatenation if `part-alignment` says otherwise.
    Constants, also through reshapes, do not get addresses.

    - A function result lies in the memory of the caller, with everything that shares its bytes.
    - Reshapes, and contiguous slices at a multiple of 64, lie in their source.
    - The parts of a concatenation are computed in place if all parts are contiguous there and at least half of the
      bytes can be computed in place; the other parts are copied first. The concatenation itself is `device.elided`.
    - A map, or an op with epilogue, overwrites an operand of the result's shape and layout that it reads element by
      element and that has no later reader (`device.inplace`). Arguments are never overwritten.

    The remaining buffers are placed by the best of three heuristics (PlaceBuffers.h); the third searches for a bounded
    time with a fixed seed.

    ```mlir
    %y = device.map(%x) {...} : (tensor<64xf32>) -> tensor<64xf32>
    // becomes, when %x lies at 128 and has no other use
    %y = device.map(%x) {...} {device.addresses = array<i64: 128>, device.inplace = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let options = [
    Option<"separate", "separate", "bool", "false",
           "Give every result except whole views separate bytes for the whole run, for inspecting tensors afterwards">,
    Option<"partAlignment", "part-alignment", "int64_t", "64",
           "Alignment of the parts of a concatenation in bytes">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numElided", "elided-copies", "Copies that need no code">,
                    Statistic<"numInplace", "in-place-results", "Results written over an operand">];
}

def SplitMapsPass : Pass<"device-split-maps", "::mlir::func::FuncOp"> {
  let summary = "Split maps that read many tensors";
  let description = [{
    Before: fused maps. After: the same computation, but no map reads more than `most` tensors, the limit of some chips'
    vector units. If an operation depends on too many tensors, the operand that depends on most of them becomes a
    tensor, with the element type of the scalar and the dims to which its operands broadcast, so no rounding is added.

    ```mlir
    %y = device.map(%a, %b, %c, %d, %e) { ((a + b) * (c + d)) + e }
    // becomes
    %t = device.map(%a, %b, %c, %d) { (a + b) * (c + d) }
    %y = device.map(%t, %e) { t + e }
    ```
  }];
  let options = [Option<"most", "most", "unsigned", "4", "Tensors that a map may read, at least 3">];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
}

def ExpandLog1pPass : Pass<"device-expand-log1p", "::mlir::func::FuncOp"> {
  let summary = "Compute log1p of f32 by a logarithm and a division";
  let description = [{
    Before: fused ops, tables formed. After: no `math.log1p` of f32 in the body of any op, for vector units without this
    function. With u = 1 + x rounded, log1p(x) is log(u) * (x / (u - 1)), which compensates for what u lost of x; it is
    x if x vanishes in u, and log(u) if u equals x. These are the steps of `log1p` in `bmodel/numerics_float.h`, so the
    bits stay the same.

    ```mlir
    %y = math.log1p %x : f32
    // becomes
    %u = arith.addf %x, %one : f32
    %d = arith.subf %u, %one : f32
    %q = arith.divf %x, %d : f32
    %l = math.log %u : f32
    %p = arith.mulf %l, %q : f32
    %n = arith.cmpf oeq, %d, %zero : f32
    %s = arith.select %n, %x, %p : f32
    %i = arith.cmpf oeq, %u, %x : f32
    %y = arith.select %i, %l, %s : f32
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def ExpandScatterPass : Pass<"device-expand-scatter", "::mlir::func::FuncOp"> {
  let summary = "Turn a scatter of one slice into a select at every position";
  let description = [{
    Before: device ops. After: no `device.scatter` without reduction that writes one slice along one axis (a row of a
    cache), or one element of each row, by an index that is only known at run time, if the elements are floats or
    integers of up to 16 bits. A map selects the update at the position of the index, clamped as by the scatter, and x
    elsewhere. For chips that cannot store by index.

    ```mlir
    %y = device.scatter %x, %i, %u {axis = 1 : i64} : (tensor<4x16x8xf32>, tensor<4x1x8xi64>, tensor<4x1x8xf32>) -> tensor<4x16x8xf32>
    // becomes
    %p = top.constant dense<[[[0], [1], ...]]> : tensor<1x16x1xi64>
    %y = device.map(%x, %u, %i, %p) {... arith.select %isMeant, %u, %x} : ... -> tensor<4x16x8xf32>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
}

def CopyBeforeProductsPass : Pass<"device-copy-before-products", "::mlir::func::FuncOp"> {
  let summary = "Move row copies from after a matmul to before it";
  let description = [{
    Before: fused ops. After: if copies move whole rows of a matmul's result (windows of attention back to their image),
    they move the rows of its first operand instead, unless these have more bytes or are repeated. The result is then
    where its readers want it, and an addition after the copies can be fused into the matmul. Each row is computed as
    before.

    ```mlir
    %y = device.matmul %x, %w : (tensor<9x8xi8>, tensor<8x6xi8>) -> tensor<9x6xf32>
    %z = device.copy %y {rows in another order}
    // becomes
    %t = device.copy %x {rows in another order}
    %z = device.matmul %t, %w : (tensor<9x8xi8>, tensor<8x6xi8>) -> tensor<9x6xf32>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numMoved", "moved-products", "Matmuls whose rows are copied before">];
}

def SplitProductsPass : Pass<"device-split-products", "::mlir::func::FuncOp"> {
  let summary = "Split a matmul whose result columns are sliced";
  let description = [{
    Before: fused ops. After: a matmul by constant weights whose readers all are copies of column ranges, with each
    column in one range, is one matmul per range, with the weights, bias and factors of its columns. The computation
    stays the same; the copies read whole tensors and often have nothing left to do (queries, keys and values of
    attention).

    ```mlir
    %y = device.matmul %x, %w : (tensor<9x8xf32>, tensor<8x6xf32>) -> tensor<9x6xf32>
    %a = device.copy %y {columns 0 to 3}
    %b = device.copy %y {columns 3 to 6}
    // becomes
    %y0 = device.matmul %x, %w0 : (tensor<9x8xf32>, tensor<8x3xf32>) -> tensor<9x3xf32>
    %y1 = device.matmul %x, %w1 : (tensor<9x8xf32>, tensor<8x3xf32>) -> tensor<9x3xf32>
    %a = device.copy %y0
    %b = device.copy %y1
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numSplit", "split-products", "Matmuls that were split">];
}

def FoldSpaceToDepthPass : Pass<"device-fold-space-to-depth", "::mlir::func::FuncOp"> {
  let summary = "Fold space-to-depth copies into convolution kernels";
  let description = [{
    Before: fused ops. After: an integer convolution by constant weights whose operand is a copy of pixel blocks to
    channels (space to depth, also as slices joined by a concatenation, in any order) reads the image itself: kernel,
    stride and padding grow by the block size. The same products are summed, without a copy.

    ```mlir
    %s = device.copy %x {blocks of 2 x 2 to channels} : (tensor<1x3x8x8xi8>) -> tensor<1x12x4x4xi8>
    %y = device.conv %s, %w {pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<1x12x4x4xi8>, tensor<8x12x3x3xi8>) -> tensor<1x8x4x4xi8>
    // becomes
    %y = device.conv %x, %v {pads = [2, 2, 2, 2], strides = [2, 2]} : (tensor<1x3x8x8xi8>, tensor<8x3x6x6xi8>) -> tensor<1x8x4x4xi8>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numFolded", "folded-copies", "Copies that were folded into convolutions">];
}

def VerifyLoweredPass : Pass<"device-verify-lowered", "::mlir::func::FuncOp"> {
  let summary = "Check that only device ops and constants are left";
  let description = [{
    Before and after: the output of convert-top-to-device, unchanged. Reports ops outside of scalar regions that are
    neither device ops nor `top.constant`, `top.weight` or the return, and results that are not tensors of static shape.
  }];
}

def VerifyLayoutsPass : Pass<"device-verify-layouts", "::mlir::func::FuncOp"> {
  let summary = "Check that every op has its operands in layouts that it can read";
  let description = [{
    Before and after: tensors row-major or in channel blocks, unchanged. Reports blocked arguments and results of the
    function, operands in a layout that their op does not allow beside its result (LayoutInterface), and blocked tensors
    of ops without LayoutInterface.
  }];
}

def VerifyAddressesPass : Pass<"device-verify-addresses", "::mlir::func::FuncOp"> {
  let summary = "Check that every operand still holds its computed value when it is read";
  let description = [{
    Before and after: the output of device-assign-addresses, unchanged. Executes the function on marks instead of bytes
    and reports an op whose operand, view or function result was overwritten or never written, a result that overwrites
    an operand other than the one that `device.inplace` allows, and an address that is missing, misaligned or outside
    its memory.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "64", "Required alignment of addresses in bytes">,
  ];
}

#endif // DEVICE_PASSES
