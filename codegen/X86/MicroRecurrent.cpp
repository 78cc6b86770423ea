//===- MicroRecurrent.cpp - RNN, GRU and LSTM on register tiles -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// The contributions of the inputs to the gates are already computed (x86-hoist-inputs), so a step multiplies the states
// by the packed weights and applies the activations. All sequences of a batch advance together as rows of a register
// tile, so that they share each panel of weights while it is in the cache. If one call executes several launch tiles,
// the tiles of one direction also advance together. This does not change the order of any sum.
#include "codegen/Kernels/RecurrentCell.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/MicroShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

class PackedRecurrent : RecurrentCell {
public:
  PackedRecurrent(KernelBuilder &kb, device::RecurrentOp op)
      : RecurrentCell(kb, op), weights(targetOf(kb), panelsOfRecurrent(op, packingOf(op))),
        tiles(kb, noEpilogue, {}, TileFunctions::Bias::None) {
    rowSize = llvm::alignTo(hidden, kBlock);
    // The padding makes sequences begin in different L1 sets.
    sequenceNumbers = (kHiddenSums + gates) * rowSize + kBlock;
    int64_t most = packingOf(op).getRows();
    // If there are two sequences, there are at least two launch tiles, for two threads.
    int64_t likely = std::max<int64_t>(likelyOf(batch), 1);
    halves = directions == 1 && batch.isKnown() && likely > 1 && likely <= most;
    unit = halves ? llvm::divideCeil(likely, 2) : EvenSplit(likely, most).length(0);
    groups = ceilDiv(batch, unit);
  }

  void emit() {
    constexpr int64_t kMostRows = 32; // whose states and sums stay in the cache
    int64_t most = std::clamp<int64_t>(kMostRows / unit, 1, maxOf(groups));
    kb.setTiles(groups * directions);
    kb.setScratchBytes(most * unit * sequenceNumbers * 4);
    kb.forLoop(0, directions, 1, [&](Value d) {
      direction = d;
      Value first = kb.mul(d, groups);
      Value begin = kb.max(kb.tileBegin(), first), end = kb.min(kb.tileEnd(), kb.add(first, groups));
      kb.forLoop(begin, end, most, [&](Value tile) {
        tileCount = kb.min(kb.constant(most), kb.sub(end, tile));
        sequence = kb.mul(kb.sub(tile, first), unit);
        count = kb.min(kb.mul(tileCount, unit), kb.sub(kb.index(batch), sequence));
        rows = kb.scratch();
        emitSequences();
      });
    });
  }

private:
  Value sequenceRows(Value i) { return kb.element(type, kb.scratch(), kb.mul(i, sequenceNumbers)); }

  /// Emits |body| for each of the current sequences.
  void overSequences(function_ref<void()> body) {
    Value first = sequence;
    kb.forLoop(kb.constant(0), count, 1, [&](Value i) {
      sequence = kb.add(first, i), rows = sequenceRows(i);
      body();
    });
    sequence = first, rows = kb.scratch();
  }

  void emitSequences() {
    overSequences([&] { loadStates(); });
    kb.forLoop(count, kb.mul(tileCount, unit), 1, [&](Value i) { // unused rows of the tiles
      rows = sequenceRows(i);
      overUnits([&](Value u, Value) {
        storeRow(kb.zero(vectorType()), kH, u);
        storeRow(kb.zero(vectorType()), kResetH, u);
      });
      rows = kb.scratch();
    });
    kb.forLoop(kb.constant(0), longest(), 1, [&](Value step) { emitStep(step); });
    overSequences([&] {
      kb.forLoop(loadLength(), kb.index(steps), 1, [&](Value at) {
        overUnits([&](Value i, Value mask) { storeOutput(kb.zero(vectorType()), at, i, mask); });
      });
      storeStates();
    });
  }

  /// Returns the number of steps of the longest of the current sequences.
  Value longest() {
    if (!has(kLens)) {
      return kb.index(steps);
    }
    Value first = sequence;
    SmallVector<Value> most = kb.forLoop(kb.constant(0), count, 1, kb.constant(0), [&](Value i, ValueRange carried) {
      sequence = kb.add(first, i);
      return SmallVector<Value>{kb.max(carried.front(), loadLength())};
    });
    sequence = first;
    return most.front();
  }

  void emitStep(Value step) {
    int64_t parts = weights.panels.groups / directions;
    for (int64_t part = 0; part < parts - resetsFirst(); ++part) {
      multiply(part, kH);
    }
    if (resetsFirst()) {
      overSequences([&] {
        time = kb.max(timeOf(step, loadLength()), kb.constant(0)); // clamped for sequences that have ended
        overUnits([&](Value i, Value mask) { storeResetUnits(i, mask); });
      });
      multiply(parts - 1, kResetH);
    }
    overSequences([&] {
      Value length = loadLength();
      auto advance = [&] {
        time = timeOf(step, length);
        overUnits([&](Value i, Value mask) {
          Value next = nextUnits(i, mask);
          storeRow(next, kH, i);
          storeOutput(next, time, i, mask);
        });
      };
      has(kLens) ? kb.ifThen(kb.less(step, length), advance) : advance();
    });
  }

  /// Computes the sums over row |from| of all sequences for the gates of |part|, which are packed together.
  void multiply(int64_t part, Row from) {
    const Panels &panels = weights.panels;
    int64_t blocks = panels.blocks(), whole = blocks / panels.panelBlocks, parts = panels.groups / directions;
    Value group = kb.mul(kb.add(kb.mul(direction, parts), part), blocks * panels.bytesOfBlock());
    Value packed = byteOffset(kb, kb.operand(operands[kR]), group);
    auto multiplyPanel = [&](Value panel, int64_t panelBlocks) {
      Value firstBlock = kb.mul(panel, panels.panelBlocks);
      Value b = byteOffset(kb, packed, kb.mul(firstBlock, panels.bytesOfBlock()));
      Value column = kb.add(kb.mul(firstBlock, kBlock), hiddenRow(part) * rowSize);
      emitTiles(b, column, panelBlocks, from);
    };
    kb.forLoop(0, whole, 1, [&](Value panel) { multiplyPanel(panel, panels.panelBlocks); });
    if (int64_t rest = blocks % panels.panelBlocks) {
      multiplyPanel(kb.constant(whole), rest);
    }
  }

  /// Multiplies the current tiles by the panel |b| of |blocks| blocks; writes to |column| of each sequence's rows.
  void emitTiles(Value b, Value column, int64_t blocks, Row from) {
    auto call = [&](Value first, int64_t height) {
      TileShape shape;
      shape.blocks = blocks;
      weights.describe(shape);
      shape.groupBytes = kBlock * shape.stepBytes;
      // No aheadBytes: every step reads the same weights, which are in L2 or L3, and prefetching from there is slower.
      TileResult result;
      result.blocked = false;
      for (int64_t row = 0; row < height; ++row) {
        shape.rows.push_back(row * sequenceNumbers * 4);
        result.rows.push_back(row * sequenceNumbers);
      }
      Value base = sequenceRows(first);
      TileFunctions::Pointers at;
      at.a = byteOffset(kb, base, from * rowSize * 4), at.b = b, at.c = kb.element(type, base, column);
      tiles.call(shape, result, at);
    };
    if (!halves) {
      kb.forLoop(kb.constant(0), tileCount, 1, [&](Value tile) { call(kb.mul(tile, unit), unit); });
      return;
    }
    Value both = kb.less(kb.constant(1), tileCount);
    kb.ifThen(both, [&] { call(kb.constant(0), batch.value()); });
    kb.ifThen(kb.less(tileCount, kb.constant(2)), [&] { call(kb.constant(0), unit); });
  }

  Value loadInputSum(int64_t gate, Value i, Value mask) override {
    Value row = kb.add(kb.mul(kb.add(kb.mul(time, batch), sequence), directions), direction);
    return loadOperand(kX, kb.add(kb.add(kb.mul(row, gates * hidden), gate * hidden), i), mask);
  }

  Value loadHiddenSum(int64_t gate, Value i, Value mask) override {
    Value sum = RecurrentCell::loadHiddenSum(gate, i, mask);
    Value offset = kb.add(kb.add(kb.mul(direction, gates * hidden), gate * hidden), i);
    return has(kBias) ? plus(sum, loadOperand(kBias, offset, mask)) : sum;
  }

  Region noEpilogue;
  TileWeights weights;
  TileFunctions tiles;
  int64_t sequenceNumbers;      ///< numbers of scratch per sequence
  int64_t unit;                 ///< sequences per launch tile
  Dim groups = 0;               ///< launch tiles per direction
  bool halves;                  ///< two launch tiles fit one register tile
  Value tileCount, count, time; ///< the current launch tiles, sequences, and time step
};

} // namespace

LogicalResult emitMicroRecurrent(device::RecurrentOp op, KernelBuilder &kb) {
  if (failed(checkPacking(op, targetOf(kb)))) {
    return failure();
  }
  PackedRecurrent(kb, op).emit();
  return success();
}

} // namespace tessera::x86
