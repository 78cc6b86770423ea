//===- AttentionMapping.cpp - Choice of the mapping of an attention -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Attention/Attention.h"

#include "bmodel/npu/latency.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

constexpr uint64_t kFloat = sizeof(float);

/// Returns the vector unit's cycles for |rows| rows per lane. |multiplies|: the vector unit also multiplies.
double computeCycles(const AttentionSizes &sizes, int64_t rows, bool multiplies, const Chip &chip) {
  double softmax = 4 + chip.functionCycles, products = multiplies ? double(sizes.depth + sizes.features) : 0;
  return double(rows * sizes.keys) * (products + softmax) * 4 / chip.vectorBytes;
}

/// Returns the DMA's cycles for |commands| commands that each move |bytes| to each of |lanes| lanes.
double moveCycles(int64_t commands, int64_t bytes, int64_t lanes, const Chip &chip) {
  double perLane = double(bytes) / chip.portBytes, all = double(bytes * lanes) / chip.dmaLocalBytes;
  return double(commands) * (chip.dmaLatency + std::max(perLane, all));
}

/// Returns the matrix unit's cycles for one sum over |channels| per output and position.
double multiplyCycles(int64_t outputs, int64_t positions, int64_t channels, const Chip &chip) {
  double divisor = hw::divisorOf(Type::f32, chip) * hw::passesOf(Type::f32, Type::f32);
  double taps = double(llvm::divideCeil(channels, std::min(chip.reduction, chip.lanes)));
  double each =
      std::max(taps * double(llvm::divideCeil(positions, chip.pixels)) * divisor, double(positions) / chip.outputs);
  return double(llvm::divideCeil(outputs, chip.lanes)) * each + chip.matrixFill + chip.issueCycles;
}

} // namespace

int64_t blocksOf(const AttentionSizes &sizes, const Chip &chip) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t blocks = 1; blocks <= std::min<int64_t>(sizes.queries, chip.lanes); ++blocks) {
    int64_t rows = int64_t(llvm::divideCeil(sizes.batches * blocks, chip.lanes)) * (sizes.queries / blocks);
    if (sizes.queries % blocks == 0 && rows < least) {
      best = blocks, least = rows;
    }
  }
  return best;
}

/// Chooses the mapping if operands of batches are moved one by one, or run by run, beside the computation.
static AttentionMapping chooseUneven(const AttentionSizes &sizes, int64_t blocks, bool hasMatrix, const Chip &chip) {
  int64_t lanes = chip.lanes, together = int64_t(llvm::divideCeil(sizes.queries, lanes));
  int64_t half = int64_t(kFloat) * (sizes.depth + sizes.features) / 2, keys = sizes.keys * half;
  int64_t inBlock = sizes.queries / blocks, mask = sizes.hasMask ? int64_t(kFloat) * sizes.keys : 0;
  auto outside = [&](int64_t bytes) { return chip.dmaLatency + double(bytes) / chip.ddrBytesPerCycle(); };
  double matrixMoves = double(sizes.batches) * (2 * outside(keys) + 2 * outside(sizes.queries * half) +
                                                (mask ? outside(sizes.queries * mask) : 0));
  double byMatrix = computeCycles(sizes, sizes.batches * together, false, chip) +
                    double(sizes.batches) * (multiplyCycles(sizes.queries, sizes.keys, sizes.depth, chip) +
                                             multiplyCycles(sizes.queries, sizes.features, sizes.keys, chip));
  // A command moves keys to all blocks of a batch or, if batches are whole blocks, those of a run of batches.
  int64_t commands = blocks > 1 ? sizes.batches : sizes.runs, used = blocks > 1 ? blocks : sizes.batches / commands;
  auto move = [&](int64_t bytes, int64_t copies) {
    return std::max(moveCycles(1, bytes, used, chip), outside(bytes * used / copies));
  };
  double blockMoves =
      double(commands) * (2 * move(keys, blocks) + 2 * move(inBlock * half, 1) + (mask ? move(inBlock * mask, 1) : 0));
  int64_t rows = int64_t(llvm::divideCeil(sizes.batches * blocks, lanes)) * inBlock;
  double byBlocks = std::max(computeCycles(sizes, rows, true, chip), blockMoves);
  return hasMatrix && std::max(byMatrix, matrixMoves) < byBlocks ? AttentionMapping::matrix : AttentionMapping::blocks;
}

AttentionMapping chooseMapping(const AttentionSizes &sizes, int64_t blocks, const Chip &chip) {
  bool hasMatrix = (chip.computes("bf16") || chip.computes("f16")) && sizes.keys <= UINT16_MAX;
  if (sizes.runs) {
    return chooseUneven(sizes, blocks, hasMatrix && sizes.features <= UINT16_MAX, chip);
  }
  int64_t lanes = chip.lanes, row = sizes.keys * int64_t(kFloat), pair = row * (sizes.depth + sizes.features) / 2;
  int64_t others = sizes.batches / sizes.group, together = int64_t(llvm::divideCeil(sizes.queries, lanes));
  double mask = sizes.hasMask ? moveCycles(1, together * row, std::min(sizes.queries, lanes), chip) : 0;
  double byQueries =
      computeCycles(sizes, sizes.batches * together, true, chip) + mask + moveCycles(2, others * pair, lanes, chip);
  int64_t inBlock = sizes.queries / blocks, used = std::min(blocks * sizes.group, lanes);
  int64_t rows = int64_t(llvm::divideCeil(sizes.batches * blocks, lanes)) * inBlock;
  double byBlocks = computeCycles(sizes, rows, true, chip) + moveCycles(2 * others, pair, used, chip);
  byBlocks += sizes.hasMask ? moveCycles(sizes.batches, inBlock * row, std::min(blocks, lanes), chip) : 0;
  double byMatrix = computeCycles(sizes, sizes.batches * together, false, chip) + mask +
                    moveCycles(2, others * pair / lanes, lanes, chip) +
                    double(sizes.batches) * (multiplyCycles(sizes.queries, sizes.keys, sizes.depth, chip) +
                                             multiplyCycles(sizes.queries, sizes.features, sizes.keys, chip));
  byMatrix = hasMatrix && sizes.features <= UINT16_MAX ? byMatrix : HUGE_VAL;
  return byMatrix < std::min(byBlocks, byQueries) ? AttentionMapping::matrix
         : byBlocks < byQueries                   ? AttentionMapping::blocks
                                                  : AttentionMapping::queries;
}

} // namespace tessera::npu
