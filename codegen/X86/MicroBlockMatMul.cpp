//===- MicroBlockMatMul.cpp - Rows quantised by blocks times packed weights ---===//
// SPDX-License-Identifier: Apache-2.0
//
// A launch tile quantises its rows to scratch once. A register tile then adds, block after block, the exact products of
// a few rows and 16 columns: the weights of a block are unpacked once for all rows. Weights of bytes are flipped to
// unsigned ones; the sums begin with what that adds. docs/numerics.md specifies the arithmetic.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/BlockMatMul.h"
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

/// Sizes of a block matmul on register tiles, computed before any code is emitted.
struct BlockGeometry {
  BlockGeometry(device::BlockMatMulOp op, BlockPackingAttr packing, const X86Target &target)
      : packing(packing), rows(multiply(Shape(op.getY()).dropBack().dims())), depth(op.getWeightShape()[0]),
        columns(op.getWeightShape()[1]), block(packing.getBlock()), dots(target.vnni), lanes(int64_t(target.lanes(32))),
        bytesOfEntry(dots ? 1 : 2), valuesAt(packing.blocks() * block * bytesOfEntry),
        rowBytes(ceilDiv(valuesAt + packing.blocks() * kBytesOfValues, 64) * 64 + 64) {
    constexpr int64_t kBytesOfPart = 96 * 1024, kMostRows = 64, kBytesOfRows = 512 * 1024;
    // The tiles of a few rows wait for the weights, those of many rows share the quantised rows of a part.
    panelsOfPart =
        std::clamp<int64_t>(kBytesOfPart / std::max<int64_t>(1, packing.bytesOfPanel()), 1, packing.panels());
    panelsOfPart = ceilDiv(packing.panels(), ceilDiv(packing.panels(), panelsOfPart));
    mostRows = target.hasMasks() ? (dots && block <= kStepsAtOnce * 4 ? 16 : 8) : 4;
    rowsOfPart = std::clamp<int64_t>(kBytesOfRows / rowBytes / mostRows * mostRows, mostRows, kMostRows);
    isStreamed = packing.bytes() > 1024 * 1024;
  }

  static constexpr int64_t kStepsAtOnce = 8;    ///< K steps whose unpacked weights the registers hold
  static constexpr int64_t kBytesOfValues = 12; ///< per block of a row: scale, start of the sums, factor of the mins

  BlockPackingAttr packing;
  Dim rows;
  int64_t depth, columns, block;
  bool dots;                                ///< vpdpbusd multiplies bytes; otherwise pairs of i16 are multiplied
  int64_t lanes;                            ///< columns of a vector
  int64_t bytesOfEntry, valuesAt, rowBytes; ///< layout of a quantised row in scratch
  int64_t panelsOfPart, rowsOfPart, mostRows;
  bool isStreamed; ///< the weights do not stay in the cache from run to run

  bool isNibble() const { return packing.getStep() == PackedStep::i4; }
  Dim rowParts() const { return tessera::ceilDiv(rows, rowsOfPart); }
  int64_t panelParts() const { return ceilDiv(packing.panels(), panelsOfPart); }
};

class BlockMatMul {
public:
  BlockMatMul(device::BlockMatMulOp op, BlockPackingAttr packing, KernelBuilder &kb)
      : kb(kb), op(op), g(op, packing, targetOf(kb)), epilogue(kb, cast<device::EpilogueInterface>(*op)) {}

  void emit() {
    kb.setScratchBytes(g.rowsOfPart * g.rowBytes);
    kb.forTiles(g.rowParts() * g.panelParts(), [&](Value tile) {
      Value firstRow = kb.mul(kb.div(tile, g.panelParts()), g.rowsOfPart);
      Value firstPanel = kb.mul(kb.rem(tile, g.panelParts()), g.panelsOfPart);
      Value rows = kb.min(kb.constant(g.rowsOfPart), kb.sub(kb.index(g.rows), firstRow));
      Value endPanel = kb.min(kb.add(firstPanel, g.panelsOfPart), kb.constant(g.packing.panels()));
      kb.forLoop(kb.constant(0), rows, 1, [&](Value row) { quantizeRow(kb.add(firstRow, row), rowAt(row)); });
      kb.forLoop(firstPanel, endPanel, 1, [&](Value panel) {
        forOpenTiles(kb, kb.constant(0), rows, g.mostRows, [&](Value first, Value count, int64_t size) {
          kb.forLoop(kb.constant(0), count, 1, [&](Value index) {
            Value row = kb.add(first, kb.mul(index, size));
            emitTile(panel, firstRow, row, size);
          });
        });
      });
    });
  }

private:
  VectorType vectorOf(Type element, int64_t lanes) { return VectorType::get({lanes}, element); }
  VectorType words() { return vectorOf(kb.b.getI32Type(), g.lanes); }
  VectorType floats() { return vectorOf(kb.b.getF32Type(), g.lanes); }
  Value splatWord(int32_t value) { return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words(), value)); }
  Value rowAt(Value row) { return byteOffset(kb, kb.scratch(), kb.mul(row, g.rowBytes)); }

  //--- rows ---

  void quantizeRow(Value row, Value to) {
    Value from = kb.element(kb.b.getF32Type(), kb.operand(0), kb.mul(row, g.depth));
    int64_t whole = g.depth / g.block;
    kb.forLoop(0, whole, 1, [&](Value block) { quantizeBlock(block, from, to, g.block); });
    if (whole < g.packing.blocks()) {
      quantizeBlock(kb.constant(whole), from, to, g.depth % g.block);
    }
  }

  /// Quantises the |count| entries of a block and stores zeros behind them.
  void quantizeBlock(Value block, Value from, Value to, int64_t count) {
    auto vector = vectorOf(kb.b.getF32Type(), kBlock), integers = vectorOf(kb.b.getI32Type(), kBlock);
    Value first = kb.mul(block, g.block), largest, total;
    Values parts;
    for (int64_t at = 0; at < g.block; at += kBlock) {
      Value index = kb.add(first, at);
      int64_t left = std::clamp<int64_t>(count - at, 0, kBlock);
      Value x = left == kBlock ? kb.load(vector, from, index)
                : left == 0    ? kb.zero(vector)
                               : kb.maskedLoad(vector, from, index, kb.maskBelow(kBlock, kb.constant(left)));
      Value bits = emitMagnitudeBits(kb, x);
      largest = largest ? Value(arith::MaxSIOp::create(kb.b, largest, bits)) : bits;
      parts.push_back(x);
    }
    Value bits = vector::ReductionOp::create(kb.b, vector::CombiningKind::MAXSI, largest);
    RowScale scale = emitRowScale(kb, bits);
    Value inverse = kb.splat(scale.inverse, kBlock);
    for (auto [part, x] : llvm::enumerate(parts)) {
      Value q = emitQuantized(kb, x, inverse);
      storeEntries(q, to, kb.add(first, int64_t(part) * kBlock));
      Value wide = arith::ExtSIOp::create(kb.b, integers, q);
      total = total ? Value(arith::AddIOp::create(kb.b, total, wide)) : wide;
    }
    storeValues(block, to, scale.scale, vector::ReductionOp::create(kb.b, vector::CombiningKind::ADD, total));
  }

  void storeEntries(Value q, Value to, Value index) {
    if (g.dots) {
      return kb.store(q, to, index);
    }
    // Stores the first and third of each four entries, then the second and fourth.
    auto halves = vectorOf(kb.b.getI16Type(), kBlock);
    Value wide = arith::ExtSIOp::create(kb.b, halves, q);
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < kBlock; i += 4) {
      order.append({i, i + 2, i + 1, i + 3});
    }
    kb.store(vector::ShuffleOp::create(kb.b, wide, wide, order), to, index);
  }

  void storeValues(Value block, Value to, Value scale, Value total) {
    Value values = byteOffset(kb, to, kb.add(kb.mul(block, kBytes), g.valuesAt)), zero = kb.constant(0);
    kb.store(scale, values, zero);
    bool isFlipped = g.isNibble() || g.dots;
    Value lowest =
        arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(isFlipped ? int32_t(g.packing.getLowest()) : 0));
    kb.store(arith::MulIOp::create(kb.b, total, lowest), values, kb.constant(1));
    Value weight = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, kb.b.getF32Type(), total), scale);
    kb.store(weight, values, kb.constant(2));
  }

  //--- register tiles ---

  /// Emits |size| rows, from row |row| of the part on, of all columns of |panel|.
  void emitTile(Value panel, Value firstRow, Value row, int64_t size) {
    Value weights = byteOffset(kb, kb.operand(1), kb.mul(panel, g.packing.bytesOfPanel()));
    Value from = rowAt(row);
    kb.forLoop(0, kBlock / g.lanes, 1, [&](Value part) {
      Value column = kb.add(kb.mul(panel, kBlock), kb.mul(part, g.lanes));
      Values sums(size, kb.zero(floats()));
      sums = kb.forLoop(kb.constant(0), kb.constant(g.packing.blocks()), 1, sums, [&](Value block, ValueRange old) {
        return addBlock(byteOffset(kb, weights, kb.mul(block, g.packing.bytesOfBlock())), part,
                        byteOffset(kb, from, kb.mul(block, g.block * g.bytesOfEntry)),
                        byteOffset(kb, from, kb.add(kb.mul(block, kBytes), g.valuesAt)), old);
      });
      for (auto [index, sum] : llvm::enumerate(sums)) {
        storeRow(sum, kb.add(firstRow, kb.add(row, int64_t(index))), column);
      }
    });
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

  /// Returns |sums|, one for each row, plus the products of a block. |entries|, |values|: those of the first row.
  Values addBlock(Value weights, Value part, Value entries, Value values, ValueRange sums) {
    if (g.isStreamed && sums.size() <= 8) {
      prefetch(weights);
    }
    Value own = byteOffset(kb, weights, kb.mul(part, g.lanes * 4));
    Values integers;
    for (size_t row = 0; row < sums.size(); ++row) {
      integers.push_back(splatOf(kb.b.getI32Type(), values, int64_t(row) * g.rowBytes + 4));
    }
    const int64_t steps = g.block / 4, most = g.dots ? BlockGeometry::kStepsAtOnce : g.lanes == kBlock ? 4 : 2;
    for (int64_t first = 0; first < steps; first += most) {
      const int64_t count = std::min(most, steps - first);
      Values factors = unpack(own, first, count);
      for (auto [row, sum] : llvm::enumerate(integers)) {
        sum = multiply(factors, entries, int64_t(row) * g.rowBytes + first * 4 * g.bytesOfEntry, sum);
      }
    }
    Values next;
    Value scales = loadScales(weights, g.packing.weightBytesOfBlock(), part), mins;
    if (g.packing.getMins()) {
      mins = loadScales(weights, g.packing.weightBytesOfBlock() + g.packing.scaleBytesOfBlock(), part);
    }
    for (auto [row, old] : llvm::enumerate(sums)) {
      int64_t at = int64_t(row) * g.rowBytes;
      Value scaled = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, floats(), integers[row]), scales);
      Value sum = emitExactFma(kb, scaled, splatOf(kb.b.getF32Type(), values, at), old);
      next.push_back(mins ? emitExactFma(kb, mins, splatOf(kb.b.getF32Type(), values, at + 8), sum) : sum);
    }
    return next;
  }

  Value splatOf(Type type, Value base, int64_t bytes) {
    return kb.splat(kb.load(type, byteOffset(kb, base, bytes), kb.constant(0), 4), g.lanes);
  }

  /// Prefetches the weights that lie a page behind those of a block; hardware prefetchers stop at the end of a page.
  void prefetch(Value weights) {
    constexpr int64_t kAhead = 4096;
    for (int64_t at = 0; at < g.packing.bytesOfBlock(); at += 64) {
      LLVM::Prefetch::create(kb.b, byteOffset(kb, weights, kAhead + at), /*rw=*/0, /*hint=*/3, /*cache=*/1);
    }
  }

  Value loadScales(Value weights, int64_t at, Value part) {
    Value from = byteOffset(kb, weights, at);
    Type element = g.packing.getHalves() ? Type(kb.b.getF16Type()) : kb.b.getF32Type();
    return kb.loadElements(element, g.lanes, from, kb.mul(part, g.lanes));
  }

  /// Loads the weights of |count| K steps from |first| on: vectors of bytes, or for each step two vectors of i16.
  Values unpack(Value weights, int64_t first, int64_t count) {
    Values factors;
    const int64_t perLoad = g.isNibble() ? 2 : 1;
    for (int64_t step = 0; step < count; step += perLoad) {
      Value from = byteOffset(kb, weights, (first + step) / perLoad * kBlockBytes);
      Value loaded = kb.load(words(), from, kb.constant(0), 4);
      if (!g.isNibble()) {
        g.dots ? factors.push_back(arith::XOrIOp::create(kb.b, loaded, splatWord(int32_t(0x80808080))))
               : appendPairs(loaded, factors);
        continue;
      }
      for (int64_t half = 0; half < std::min<int64_t>(2, count - step); ++half) {
        Value nibbles = half ? shifted(loaded, 4) : loaded;
        if (g.dots) {
          factors.push_back(arith::AndIOp::create(kb.b, nibbles, splatWord(0x0f0f0f0f)));
          continue;
        }
        factors.push_back(arith::AndIOp::create(kb.b, nibbles, splatWord(0x000f000f)));
        factors.push_back(arith::AndIOp::create(kb.b, shifted(loaded, 4 * half + 8), splatWord(0x000f000f)));
      }
    }
    return factors;
  }

  Value shifted(Value value, int32_t by) { return arith::ShRUIOp::create(kb.b, value, splatWord(by)); }

  /// Appends the even and the odd bytes of |loaded| as i16.
  void appendPairs(Value loaded, Values &factors) {
    auto halves = vectorOf(kb.b.getI16Type(), 2 * g.lanes);
    Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(halves, int16_t(8)));
    Value all = vector::BitCastOp::create(kb.b, halves, loaded);
    Value even = arith::ShRSIOp::create(kb.b, arith::ShLIOp::create(kb.b, all, eight), eight);
    factors.push_back(vector::BitCastOp::create(kb.b, words(), even));
    factors.push_back(vector::BitCastOp::create(kb.b, words(), arith::ShRSIOp::create(kb.b, all, eight)));
  }

  /// Returns |sum| plus the products of the unpacked |factors| and the entries of a row, which begin |at| bytes behind
  /// |entries|. Both instructions add exact products of integers.
  Value multiply(ArrayRef<Value> factors, Value entries, int64_t at, Value sum) {
    const bool wide = g.lanes == kBlock;
    const char *name = g.dots ? "llvm.x86.avx512.vpdpbusd.512"
                       : wide ? "llvm.x86.avx512.pmaddw.d.512"
                              : "llvm.x86.avx2.pmadd.wd";
    auto type = g.dots ? vectorOf(kb.b.getI8Type(), 4 * g.lanes) : vectorOf(kb.b.getI16Type(), 2 * g.lanes);
    for (auto [index, factor] : llvm::enumerate(factors)) {
      Values operands{
          vector::BitCastOp::create(kb.b, type, factor),
          vector::BitCastOp::create(kb.b, type, splatOf(kb.b.getI32Type(), entries, at + int64_t(index) * 4))};
      if (g.dots) {
        operands.insert(operands.begin(), sum);
      }
      Value result = LLVM::CallIntrinsicOp::create(kb.b, words(), kb.b.getStringAttr(name), operands).getResult(0);
      sum = g.dots ? result : arith::AddIOp::create(kb.b, sum, result);
    }
    return sum;
  }

  static constexpr int64_t kBytes = BlockGeometry::kBytesOfValues;

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
