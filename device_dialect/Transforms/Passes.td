//===- Passes.td - Passes on the device dialect ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_PASSES
#define DEVICE_PASSES

include "mlir/Pass/PassBase.td"

def SimplifyCopiesPass : Pass<"device-simplify-copies", "::mlir::func::FuncOp"> {
  let summary = "Join copies of copies, turn copies that move nothing into views";
  let description = [{
    Before: one `device.copy` per move of the network. After: a copy that reads another copy reads its sources instead
    (a slice of a concatenation, a transposition of a transposition, a padded slice), also through a reshape that only adds
    or drops dims of size 1; a copy that leaves every byte in its place is a `device.reshape`; reshapes of reshapes are one;
    moves without users are gone. With `through-reshapes`, copies of one source each are joined as well where a reshape between
    them takes dims apart or joins them (windows of a shifted image): there is a piece for each rectangle of the finer dims, as long as
    these cost less than the move that is spared.

    A copy with several users is read through only where all of them are copies and it is a mere slice: a transposition is
    done once. Joined copies have at most 64 pieces. Row-major tensors only. Copies that address assignment can do without
    (slices and parts of concatenations that are contiguous) stay copies here.

    ```mlir
    %a = device.copy %x {pieces = [#device.piece<source = 0, sizes = [3, 2], ..., src_dims = [1, 0], ...>]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %b = device.copy %a {pieces = [#device.piece<source = 0, sizes = [2, 3], ..., src_dims = [1, 0], ...>]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    // %b becomes %x
    ```
  }];
  let options = [Option<"throughReshapes", "through-reshapes", "bool", "false", "Also where dims are taken apart or joined between">];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numComposed", "composed-copies", "Copies that read through others">,
                    Statistic<"numViews", "views", "Copies that became reshapes">,
                    Statistic<"numRemoved", "removed-moves", "Moves without users removed">];
}

def FormTablesPass : Pass<"device-form-tables", "::mlir::func::FuncOp"> {
  let summary = "Turn functions of one byte into tables";
  let description = [{
    Before: every elementwise op is a `device.map`. After: maps with 8-bit results that are computed, through any number of maps,
    from one 8-bit tensor of the same dims and constants of one element alone are `device.lut`; their 256 values come from the
    reference evaluation. With `per-channel`, constants may have a value for each channel (dim 1 of four) as well: each gets a table of its
    own, where all of them are smaller than a quarter of the tensor. Maps that only they read are gone. So dequantise, sigmoid, quantise is
    one lookup, and exact on every chip.

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
  let options = [Option<"perChannel", "per-channel", "bool", "false", "Form tables of channels, too">];
  let statistics = [Statistic<"numTables", "tables", "Maps replaced by tables">];
}

def FuseEpiloguesPass : Pass<"device-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Put elementwise maps into the epilogues of their producers, and maps into maps";
  let description = [{
    Before: every elementwise op is a `device.map`, tensors are row-major. After: a map that is the only user of a
    convolution, matrix product, pool or reduction is the last part of that op's epilogue, its other operands are extras; of
    several such producers the last one in the program takes the map, so a residual addition ends the longer branch. A map
    of the result's shape that has a single user, or costs little and has only maps as users, is computed inside its users.
    A map behind a reshape is computed on the dims before it where its operands allow. Dequantisations of bytes go into the
    maps that read them first of all, so that epilogues read bytes.

    The fused op stands where the map stood, has its name, and the locations of both; values that no longer exist lose
    their names. Nothing is computed more often than before except bodies of up to four cheap operations.

    Norms and attention, which make rows, take maps only where `into-rows` says so, which then is all that is done: not every
    family has kernels of them that can, and `integer-attention` tells of one whose attention of floats cannot.

    Not fused: operands that the producer's kernels cannot read beside their result (neither its shape, nor one value per
    channel or column, nor one value), results of another element type (other than behind sums of integers), broadcasts of the producer, bodies that would
    grow beyond 64 operations or ops beyond 8 operands.

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
  let options = [Option<"intoRows", "into-rows", "bool", "false", "Only maps of the results of norms and attention">,
                 Option<"integerAttention", "integer-attention", "bool", "false",
                        "Of attention, only that of integers takes maps">];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numEpilogues", "fused-epilogues", "Maps that became part of an epilogue">,
                    Statistic<"numMaps", "fused-maps", "Maps computed inside a map that reads them">];
}

def AssignAddressesPass : Pass<"device-assign-addresses", "::mlir::func::FuncOp"> {
  let summary = "Give every result its bytes in the workspace or in a caller's memory";
  let description = [{
    Before: device ops in their final order and layouts, no addresses; the order of the ops is the order of execution. After: `device.addresses` and
    `device.memories` on every op with results that are no constants, `device.workspace_bytes` and
    `device.workspace_lower_bound` (largest sum of bytes needed at one step) on the function. All addresses are multiples of
    64, but for parts of a concatenation where `part-alignment` says otherwise. Constants, also behind reshapes, have none.

    - A function result lies in the memory of the caller, with everything that shares its bytes.
    - Reshapes, and copies that slice one run of bytes at a multiple of 64, lie in their source.
    - The parts of a concatenation are computed at their place in it where all parts are runs of bytes there and at least
      half of the bytes can be; the others get a copy of their own in front. The concatenation itself is `device.elided`.
    - A map, or an op with epilogue, overwrites an operand of the result's shape and layout that it reads element by
      element and that nobody needs afterwards (`device.inplace`). Arguments are never overwritten.

    What remains is placed by the best of three heuristics (PlaceBuffers.h), of which the last searches for a bounded time
    with a fixed seed.

    ```mlir
    %y = device.map(%x) {...} : (tensor<64xf32>) -> tensor<64xf32>
    // becomes, when %x lies at 128 and has no other use
    %y = device.map(%x) {...} {device.addresses = array<i64: 128>, device.inplace = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let options = [
    Option<"separate", "separate", "bool", "false",
           "Every result but views of whole ones has bytes of its own for the whole run: for looking at tensors afterwards">,
    Option<"partAlignment", "part-alignment", "int64_t", "64",
           "What the places of parts in a concatenation are multiples of">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numElided", "elided-copies", "Copies done by addresses alone">,
                    Statistic<"numInplace", "in-place-results", "Results written over an operand">];
}

def SplitMapsPass : Pass<"device-split-maps", "::mlir::func::FuncOp"> {
  let summary = "Make several maps of one that reads many tensors";
  let description = [{
    Before: fused maps. After: the same, but none reads more than `most` tensors, as vector units of some chips do not. Values
    of the body become tensors, of an operation that reads too many the operand that reads most of them; they have the element type of the
    scalar and the dims that their operands broadcast to, so nothing is rounded that was not.

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
    Before: fused ops, tables formed. After: no `math.log1p` of f32 in the body of any op, for vector units that have no such function.
    With u = 1 + x rounded, log1p(x) is log(u) * (x / (u - 1)), which makes up for what u lost of x; x where nothing of it is left in u,
    and log(u) where u is x. These are the steps of `log1p` in `bmodel/numerics_float.h`, so the bits stay the same.

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
  let summary = "Write one slice by an index as a choice at every position";
  let description = [{
    Before: device ops. After: no `device.scatter` without reduction that writes one slice along one axis (a row of a cache), or one element of each row,
    by an index that is only known at run time; of floats and integers up to 16 bits. A map takes the update at
    the position that the index means, clamped as by the scatter, and x at others. For chips that cannot store by index.

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
  let summary = "Move rows before a product rather than behind it";
  let description = [{
    Before: fused ops. After: where copies move whole rows of a product (the windows of attention back to their picture), they
    move the rows of what it multiplies instead, unless these take more bytes or are repeated; so the result is where its readers want
    it, and an addition behind the copies can become a part of the product. What is computed stays the same, row by row.

    ```mlir
    %y = device.matmul %x, %w : (tensor<9x8xi8>, tensor<8x6xi8>) -> tensor<9x6xf32>
    %z = device.copy %y {rows in another order}
    // becomes
    %t = device.copy %x {rows in another order}
    %z = device.matmul %t, %w : (tensor<9x8xi8>, tensor<8x6xi8>) -> tensor<9x6xf32>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numMoved", "moved-products", "Products whose rows are moved before">];
}

def SplitProductsPass : Pass<"device-split-products", "::mlir::func::FuncOp"> {
  let summary = "Make several products of one whose columns are taken apart";
  let description = [{
    Before: fused ops. After: a product by constant weights that is read by copies of columns alone, each column by one range of
    them, is one product for each range, with the weights, bias and factors of its columns. What is computed stays the same;
    the copies read whole tensors, and often there is nothing left for them to do (queries, keys and values of attention).

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
  let statistics = [Statistic<"numSplit", "split-products", "Products that became several">];
}

def FoldSpaceToDepthPass : Pass<"device-fold-space-to-depth", "::mlir::func::FuncOp"> {
  let summary = "Let convolutions see the pixels of blocks that became their channels";
  let description = [{
    Before: fused ops. After: a convolution of integers by constant weights whose operand is a copy of blocks of pixels to channels (space
    to depth, as slices that a concatenation joins, in any order) reads the image: its kernel, step and padding are as many times
    larger. The same products are summed, and nothing is copied before.

    ```mlir
    %s = device.copy %x {blocks of 2 x 2 to channels} : (tensor<1x3x8x8xi8>) -> tensor<1x12x4x4xi8>
    %y = device.conv %s, %w {pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<1x12x4x4xi8>, tensor<8x12x3x3xi8>) -> tensor<1x8x4x4xi8>
    // becomes
    %y = device.conv %x, %v {pads = [2, 2, 2, 2], strides = [2, 2]} : (tensor<1x3x8x8xi8>, tensor<8x3x6x6xi8>) -> tensor<1x8x4x4xi8>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numFolded", "folded-copies", "Copies that convolutions do without">];
}

def VerifyLoweredPass : Pass<"device-verify-lowered", "::mlir::func::FuncOp"> {
  let summary = "Check that only device ops and constants are left";
  let description = [{
    Before and after: what convert-top-to-device makes, unchanged. Reports ops outside of scalar regions that are neither of the
    device dialect nor `top.constant`, `top.weight` or the return, and results that are no tensors of static shape.
  }];
}

def VerifyLayoutsPass : Pass<"device-verify-layouts", "::mlir::func::FuncOp"> {
  let summary = "Check that every op has its operands in layouts it can read";
  let description = [{
    Before and after: tensors row-major or in channel blocks, unchanged. Reports blocked arguments and results of the function, operands
    that lie otherwise than their op allows beside its result (LayoutInterface), and blocked tensors of ops that know none.
  }];
}

def VerifyAddressesPass : Pass<"device-verify-addresses", "::mlir::func::FuncOp"> {
  let summary = "Check that every operand still holds what was computed when it is read";
  let description = [{
    Before and after: the output of device-assign-addresses, unchanged. Executes the function on marks instead of bytes and
    reports an op whose operand, view or function result was overwritten or never written, a result that overwrites an
    operand other than the one `device.inplace` allows, an address that is missing, misaligned or outside of its memory.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "64", "what addresses are multiples of">,
  ];
}

#endif // DEVICE_PASSES
