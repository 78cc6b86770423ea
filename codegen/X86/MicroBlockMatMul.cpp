//===- MicroBlockMatMul.cpp - Rows quantised by blocks times packed weights ---===//
// SPDX-License-Identifier: Apache-2.0
//
// A launch tile quantises its rows to scratch once. A register tile then adds, block after block, the exact products of
// a few rows and a vector of columns: the weights of a block are unpacked once for all rows of the tile, or without
// VNNI for up to all rows of the launch tile. Weights of bytes are flipped to unsigned ones, and without VNNI split
// into halves, whose products fit sums of i16; the sums begin with what the flip adds. docs/numerics.md specifies the
// arithmetic.
//===----------------------------------------------------------------------===//
#include "codegen/X86/BlockRows.h"

#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/MicroShape.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

using Values = SmallVector<Value>;

class BlockMatMul {
public:
  BlockMatMul(device::BlockMatMulOp op, BlockPackingAttr packing, KernelBuilder &kb)
      : kb(kb), op(op), g(op, packing, targetOf(kb)), epilogue(kb, cast<device::EpilogueInterface>(*op)) {}

  void emit() {
    kb.setScratchBytes(g.scratchBytes());
    kb.forTiles(g.rowParts() * g.panelParts(), [&](Value tile) {
      Value firstRow = kb.mul(kb.div(tile, g.panelParts()), g.rowsOfPart);
      Value firstPanel = kb.mul(kb.rem(tile, g.panelParts()), g.panelsOfPart);
      Value count = kb.min(kb.constant(g.rowsOfPart), kb.sub(kb.index(g.rows), firstRow));
      Value endPanel = kb.min(kb.add(firstPanel, g.panelsOfPart), kb.constant(g.packing.panels()));
      Part part{BlockRows(kb, g, count), firstRow, count, firstPanel, endPanel};
      part.rows.quantize(firstRow);
      emitPart(part);
    });
  }

private:
  /// Rows and panels of a launch tile.
  struct Part {
    BlockRows rows;
    Value firstRow, count, firstPanel, endPanel;
  };
  /// Unpacked weights of some K steps: bytes, or their |low| and |high| halves.
  struct Factors {
    Values low, high;
  };
  /// A vector of columns of a panel.
  struct Columns {
    Value weights; ///< of the panel
    Value part;    ///< which vector of the panel
    Value first;   ///< its first column
  };

  VectorType vectorOf(Type element, int64_t lanes) { return VectorType::get({lanes}, element); }
  VectorType words() { return vectorOf(kb.b.getI32Type(), g.lanes); }
  VectorType floats() { return vectorOf(kb.b.getF32Type(), g.lanes); }
  Value splatWord(int32_t value) { return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words(), value)); }

  void emitPart(Part &part) {
    if (!g.sharesUnpacked()) {
      return forColumns(part, [&](const Columns &columns) { emitTiles(part, columns); });
    }
    Value isMany = kb.less(kb.constant(g.mostRows), part.count);
    kb.ifThen(isMany, [&] { forColumns(part, [&](const Columns &columns) { emitManyRows(part, columns); }); });
    if (!g.hasFewRows()) {
      return;
    }
    Value fewRows = arith::SelectOp::create(kb.b, isMany, kb.constant(0), part.count);
    Part few{part.rows, part.firstRow, fewRows, part.firstPanel, part.endPanel};
    forColumns(few, [&](const Columns &columns) { emitTiles(few, columns); });
  }

  void forColumns(const Part &part, function_ref<void(const Columns &)> body) {
    kb.forLoop(part.firstPanel, part.endPanel, 1, [&](Value panel) {
      Value weights = byteOffset(kb, kb.operand(1), kb.mul(panel, g.packing.bytesOfPanel()));
      kb.forLoop(0, kBlock / g.lanes, 1,
                 [&](Value index) { body({weights, index, kb.add(kb.mul(panel, kBlock), kb.mul(index, g.lanes))}); });
    });
  }

  //--- register tiles of a few rows ---

  void emitTiles(Part &part, const Columns &columns) {
    forOpenTiles(kb, kb.constant(0), part.count, g.mostRows, [&](Value first, Value count, int64_t size) {
      kb.forLoop(kb.constant(0), count, 1,
                 [&](Value index) { emitTile(part, columns, kb.add(first, kb.mul(index, size)), size); });
    });
  }

  /// Emits |size| rows from |row| on.
  void emitTile(Part &part, const Columns &columns, Value row, int64_t size) {
    Values sums(size, kb.zero(floats()));
    sums = kb.forLoop(kb.constant(0), kb.constant(g.packing.blocks()), 1, sums, [&](Value block, ValueRange old) {
      return addBlock(byteOffset(kb, columns.weights, kb.mul(block, g.packing.bytesOfBlock())), columns.part,
                      part.rows.at(block, row), old);
    });
    for (auto [index, sum] : llvm::enumerate(sums)) {
      storeRow(sum, kb.add(part.firstRow, kb.add(row, int64_t(index))), columns.first);
    }
  }

  /// Returns |sums|, one for each row, plus the products of a block. |record|: that of the first row.
  Values addBlock(Value weights, Value part, Value record, ValueRange sums) {
    constexpr size_t kMostRowsOfPrefetch = 8;
    if (g.isStreamed && sums.size() <= kMostRowsOfPrefetch) {
      prefetch(weights);
    }
    Values records, integers;
    for (size_t row = 0; row < sums.size(); ++row) {
      records.push_back(byteOffset(kb, record, Dim(int64_t(row) * g.recordBytes)));
      integers.push_back(startOf(records.back()));
    }
    forSteps([&](int64_t first, int64_t count) {
      Factors factors = unpack(weights, part, first, count);
      for (auto [row, sum] : llvm::enumerate(integers)) {
        sum = multiply(factors, records[row], first, sum);
      }
    });
    Scales scales = loadScales(weights, part);
    Values next;
    for (auto [row, old] : llvm::enumerate(sums)) {
      next.push_back(addScaled(scales, records[row], integers[row], old));
    }
    return next;
  }

  //--- many rows ---

  /// Emits all rows of |part|, block by block: the weights of a block stay in registers, the sums are in scratch.
  void emitManyRows(Part &part, const Columns &columns) {
    Value zero = kb.zero(floats());
    auto forRows = [&](function_ref<void(Value)> body) { kb.forLoop(kb.constant(0), part.count, 1, body); };
    forRows([&](Value row) { kb.store(zero, sumOf(row), kb.constant(0)); });
    kb.forLoop(kb.constant(0), kb.constant(g.packing.blocks()), 1, [&](Value block) {
      Value weights = byteOffset(kb, columns.weights, kb.mul(block, g.packing.bytesOfBlock()));
      forSteps([&](int64_t first, int64_t count) {
        const Factors factors = unpack(weights, columns.part, first, count);
        const bool isLast = first + count == g.block / 4;
        const Scales scales = isLast ? loadScales(weights, columns.part) : Scales();
        forRows([&](Value row) {
          Value record = part.rows.at(block, row);
          Value start = first ? kb.load(words(), partialSumOf(row), kb.constant(0)) : startOf(record);
          Value integers = multiply(factors, record, first, start);
          if (!isLast) {
            return kb.store(integers, partialSumOf(row), kb.constant(0));
          }
          Value sum = sumOf(row), old = kb.load(floats(), sum, kb.constant(0));
          kb.store(addScaled(scales, record, integers, old), sum, kb.constant(0));
        });
      });
    });
    forRows([&](Value row) {
      storeRow(kb.load(floats(), sumOf(row), kb.constant(0)), kb.add(part.firstRow, row), columns.first);
    });
  }

  Value sumOf(Value row) { return vectorAt(g.sumsAt(), row); }
  Value partialSumOf(Value row) { return vectorAt(g.partialSumsAt(), row); }
  Value vectorAt(int64_t offset, Value row) {
    return byteOffset(kb, kb.scratch(), kb.add(kb.mul(row, g.lanes * 4), offset));
  }

  //--- arithmetic ---

  /// Scales and mins of a vector of columns.
  struct Scales {
    Value scales, mins;
  };

  /// Calls |body| with the first and the number of the K steps of a block whose weights are unpacked together.
  void forSteps(function_ref<void(int64_t first, int64_t count)> body) {
    const int64_t steps = g.block / 4, most = g.stepsAtOnce();
    for (int64_t first = 0; first < steps; first += most) {
      body(first, std::min(most, steps - first));
    }
  }

  /// Returns the start of the sums of integers; null for zero.
  Value startOf(Value record) {
    return g.packing.getLowest() ? splatOf(kb.b.getI32Type(), record, g.block + BlockRows::kStartAt) : Value();
  }

  /// Returns |old| plus the scaled sums of a block.
  Value addScaled(const Scales &by, Value record, Value integers, Value old) {
    Type f32 = kb.b.getF32Type();
    Value scaled = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, floats(), integers), by.scales);
    Value sum = emitExactFma(kb, scaled, splatOf(f32, record, g.block + BlockRows::kScaleAt), old);
    return by.mins ? emitExactFma(kb, by.mins, splatOf(f32, record, g.block + BlockRows::kMinFactorAt), sum) : sum;
  }

  Value splatOf(Type type, Value base, int64_t bytes) {
    return kb.splat(kb.load(type, byteOffset(kb, base, Dim(bytes)), kb.constant(0), 4), g.lanes);
  }

  /// Prefetches the weights that lie a page behind those of a block; hardware prefetchers stop at the end of a page.
  void prefetch(Value weights) {
    constexpr int64_t kAhead = 4096;
    for (int64_t at = 0; at < g.packing.bytesOfBlock(); at += 64) {
      LLVM::Prefetch::create(kb.b, byteOffset(kb, weights, Dim(kAhead + at)), /*rw=*/0, /*hint=*/3, /*cache=*/1);
    }
  }

  Scales loadScales(Value weights, Value part) {
    Type element = g.packing.getHalves() ? Type(kb.b.getF16Type()) : kb.b.getF32Type();
    auto load = [&](int64_t at) {
      return kb.loadElements(element, g.lanes, byteOffset(kb, weights, Dim(at)), kb.mul(part, g.lanes));
    };
    const int64_t at = g.packing.weightBytesOfBlock();
    return {load(at), g.packing.getMins() ? load(at + g.packing.scaleBytesOfBlock()) : Value()};
  }

  /// Loads the weights of |count| K steps from |first| on of a block.
  Factors unpack(Value weights, Value part, int64_t first, int64_t count) {
    Factors factors;
    const int64_t perLoad = g.isNibble() ? 2 : 1;
    Value own = byteOffset(kb, weights, kb.mul(part, g.lanes * 4));
    for (int64_t step = 0; step < count; step += perLoad) {
      Value from = byteOffset(kb, own, Dim((first + step) / perLoad * kBlockBytes));
      Value loaded = kb.load(words(), from, kb.constant(0), 4);
      if (g.isNibble()) {
        factors.low.push_back(lowHalves(loaded));
        if (step + 1 < count) {
          factors.low.push_back(lowHalves(shifted(loaded)));
        }
        continue;
      }
      Value isUnsigned = arith::XOrIOp::create(kb.b, loaded, splatWord(int32_t(0x80808080)));
      factors.low.push_back(g.dots ? isUnsigned : lowHalves(isUnsigned));
      if (!g.dots) {
        factors.high.push_back(lowHalves(shifted(isUnsigned)));
      }
    }
    return factors;
  }

  Value lowHalves(Value value) { return arith::AndIOp::create(kb.b, value, splatWord(0x0f0f0f0f)); }
  Value shifted(Value value) { return arith::ShRUIOp::create(kb.b, value, splatWord(4)); }

  Value call(StringRef name, VectorType type, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(kb.b, type, kb.b.getStringAttr(name), operands).getResult(0);
  }

  /// Returns |sum| (null: zero) plus the exact products of |factors|, of the K steps from |first| on, and the entries
  /// of |record|.
  Value multiply(const Factors &factors, Value record, int64_t first, Value sum) {
    auto bytes = vectorOf(kb.b.getI8Type(), 4 * g.lanes);
    Values entries;
    for (size_t step = 0; step < factors.low.size(); ++step) {
      Value splat = splatOf(kb.b.getI32Type(), record, (first + int64_t(step)) * 4);
      entries.push_back(vector::BitCastOp::create(kb.b, bytes, splat));
    }
    if (g.dots) {
      sum = sum ? sum : kb.zero(words());
      for (auto [factor, entry] : llvm::zip_equal(factors.low, entries)) {
        Value weights = vector::BitCastOp::create(kb.b, bytes, factor);
        sum = call("llvm.x86.avx512.vpdpbusd.512", words(), {sum, weights, entry});
      }
      return sum;
    }
    Value products = multiplyHalves(factors.low, entries, 1);
    if (!factors.high.empty()) {
      products = arith::AddIOp::create(kb.b, products, multiplyHalves(factors.high, entries, 16));
    }
    return sum ? Value(arith::AddIOp::create(kb.b, sum, products)) : products;
  }

  /// Returns the sums of the products of |factors|, bytes from 0 to 15, and |entries|, times |scale|. The i16 sums of
  /// up to eight steps of two products each are exact: their magnitudes are at most 8 * 2 * 15 * 128 = 30720.
  Value multiplyHalves(ArrayRef<Value> factors, ArrayRef<Value> entries, int16_t scale) {
    static_assert(BlockGeometry::kStepsAtOnce * 2 * 15 * 128 <= std::numeric_limits<int16_t>::max());
    const bool isWide = g.lanes == kBlock;
    auto bytes = vectorOf(kb.b.getI8Type(), 4 * g.lanes), halves = vectorOf(kb.b.getI16Type(), 2 * g.lanes);
    Value sum;
    for (auto [factor, entry] : llvm::zip_equal(factors, entries)) {
      Value weights = vector::BitCastOp::create(kb.b, bytes, factor);
      Value pairs =
          call(isWide ? "llvm.x86.avx512.pmaddubs.w.512" : "llvm.x86.avx2.pmadd.ub.sw", halves, {weights, entry});
      sum = sum ? Value(arith::AddIOp::create(kb.b, sum, pairs)) : pairs;
    }
    Value factor = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(halves, scale));
    return call(isWide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd", words(), {sum, factor});
  }

  void storeRow(Value sum, Value row, Value column) {
    SmallVector<Dim> space = Shape(op.getY()).dropBack().dims();
    const bool isMatrix = llvm::all_of(ArrayRef(space).drop_back(), [](Dim dim) { return dim.is(1); });
    Values indices(space.size() - 1, kb.constant(0));
    indices.push_back(row);
    if (!isMatrix) { // divisions by sizes known at run time only are slow
      indices = delinearize(kb, row, space);
    }
    indices.push_back(column);
    Value mask = g.columns % g.lanes ? kb.maskBelow(g.lanes, kb.sub(kb.constant(g.columns), column)) : Value();
    auto store = [&] { epilogue.store(sum, indices, int64_t(space.size()), mask); };
    bool isHalf = g.lanes < kBlock && ceilDiv(g.columns, g.lanes) * g.lanes % kBlock; // a panel may end before its half
    isHalf ? kb.ifThen(kb.less(column, kb.constant(g.columns)), store) : store();
  }

  KernelBuilder &kb;
  device::BlockMatMulOp op;
  const BlockGeometry g;
  EpilogueStore epilogue;
};

} // namespace

LogicalResult emitMicroBlockMatMul(device::BlockMatMulOp op, KernelBuilder &kb) {
  auto packing = dyn_cast_if_present<BlockPackingAttr>(op.getPackingAttr());
  if (!packing || !targetOf(kb).hasFma()) {
    return op.emitOpError() << "has weights packed for another chip than " << targetOf(kb).name();
  }
  if (failed(requireRowMajor(op))) {
    return failure();
  }
  BlockMatMul(op, packing, kb).emit();
  return success();
}

} // namespace tessera::x86
