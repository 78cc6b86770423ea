//===- AttentionProducts.cpp - Attention by the matrix unit ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Attention/Attention.h"

using llvm::ArrayRef;
using llvm::SmallVector;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

/// Appends a matmul for each n of one h: y[n,c,w] = factor * sum over k of a[n,c,k] * b[n,k,w] (+ added), with fused
/// multiply-add for floats as in dot, and exact sums for integers. The rows of b are read from the lanes they are in.
void multiply(const TileView &y, const TileView &a, const TileView &b, float factor, const TileView *added,
              Tile &tile) {
  hw::matmul_command command;
  command.y = y.tensor, command.a = a.tensor, command.b = b.tensor, command.shape = y.shape;
  command.b.strides[3] = b.tensor.strides[2], command.channels = b.dim(1);
  command.output.factor = factor, command.output.flags = hw::isFloat(b.tensor.type) ? hw::Output::fused : 0;
  if (added) {
    command.r = added->tensor, command.output.residualScale = 1;
  }
  tile.computes.push_back(hw::encode(command));
}

/// Every |step|-th head, starting with the first, whose rows begin in the same lane at a constant distance.
struct HeadRun {
  uint32_t step = 1, count = 1;
  int64_t distance = 0; ///< in bytes
};

HeadRun headRunOf(ArrayRef<TileView> heads) {
  auto isSame = [&](size_t i) { return heads[i].tensor.lane == heads[0].tensor.lane; };
  auto offset = [&](size_t i) { return int64_t(heads[i].tensor.offset); };
  HeadRun run;
  while (run.step < heads.size() && !isSame(run.step)) {
    ++run.step;
  }
  if (run.step >= heads.size()) {
    return {};
  }
  run.distance = offset(run.step) - offset(0);
  if (run.distance <= 0 || run.distance > INT32_MAX) {
    return {};
  }
  for (size_t i = run.step; i < heads.size(); i += run.step) {
    if (!isSame(i) || offset(i) - offset(i - run.step) != run.distance) {
      break;
    }
    ++run.count;
  }
  return run;
}

} // namespace

/// Loads the rows of keys' depth or of values with the rows as channels over lanes, as they may lie already: one view
/// for all h, or one per h.
SmallVector<TileView> AttentionTiles::loadRows(ArrayRef<TileView> of, const Shape &begin, const Shape &part,
                                               LocalBudget &localBudget, Tile &tile) {
  SmallVector<TileView> result;
  auto add = [&](ArrayRef<TileView> some) {
    TileView from = partOf(some, begin, part, false);
    for (int dim = from.dim(2) == 1 ? 2 : 1; dim <= 2; ++dim) {
      from.shape.dims[dim] = from.shape.dims[dim + 1], from.tensor.strides[dim] = from.tensor.strides[dim + 1];
    }
    from.shape.dims[3] = 1, from.tensor.strides[3] = int32_t(hw::sizeOf(from.tensor.type));
    result.push_back(loadAnyLane(from, localBudget, tile));
  };
  if (!sideBySide) {
    add(of);
    return result;
  }
  for (uint32_t h = begin.dims[2]; h < begin.dims[2] + part.dims[2]; ++h) {
    add(of[h]);
  }
  return result;
}

void AttentionTiles::multiplyAll(const TileView &y, const TileView &a, ArrayRef<TileView> b, float factor, Tile &tile,
                                 const TileView *added) {
  std::vector<bool> isDone(y.dim(2));
  for (uint32_t h = 0; h < y.dim(2); ++h) {
    auto one = [&](const TileView &of) { return slice(of, 2, h, 1, chip); };
    if (isDone[h]) {
      continue;
    }
    TileView to = one(y), from = one(a), rows = b[sideBySide ? h : 0], addend = added ? one(*added) : TileView();
    if (sideBySide && y.dim(0) == 1) {
      // Within one batch, evenly spaced heads that begin in the same lane are one command.
      ArrayRef<TileView> left = b.drop_front(h);
      HeadRun run = headRunOf(left);
      for (TileView *each : {&to, &from, &addend}) {
        each->shape.dims[0] = run.count, each->tensor.strides[0] = each->tensor.strides[2] * int32_t(run.step);
      }
      rows.shape.dims[0] = run.count, rows.tensor.strides[0] = int32_t(run.distance);
      for (uint32_t i = 0; i < run.count; ++i) {
        isDone[h + i * run.step] = true;
      }
    }
    multiply(to, from, rows, factor, added ? &addend : nullptr, tile);
  }
}

/// Multiplies 8-bit operands on the matrix unit. The output stage adds the mask if that has a number for each score.
void AttentionTiles::makeIntegerTile(const Shape &begin, const Shape &part) {
  TileView to = partOf(y, begin, part, true);
  lane = laneOf({to, partOf(q, begin, part, true)});
  LocalBudget localBudget(stream);
  localBudget.lane = lane;
  Tile &first = tiles.emplace_back();
  TileView from = loadQueries(begin, part, localBudget, first);
  Shape all = part, row = part, of = part;
  all.dims[3] = uint32_t(sizes.keys), row.dims[3] = 1, of.dims[3] = uint32_t(sizes.features);
  TileView scores = localBudget.allocate(all, Type::f32), powers = localBudget.allocate(all, Type::u8);
  TileView best = localBudget.allocate(row, Type::f32), total = localBudget.allocate(row, Type::f32);
  TileView result = !sumsAreApart() && to.isLocal() ? to : localBudget.allocate(of, Type::f32);
  bool isWhole = false;
  if (!masks.empty()) {
    loadMask(scores, begin, part, localBudget, first);
    isWhole = mask->tensor.strides[3] || sizes.keys == 1;
  }
  multiplyAll(scores, from, loadRows(keys, begin, part, localBudget, first), scales.scores, first,
              isWhole ? &*mask : nullptr);
  if (!masks.empty() && !isWhole) {
    compute(stream, {{Op::add, 4, 0, 1, 0}}, scores, {scores, *mask}, first);
  }
  reduceScores(best, scores, first);
  compute(stream,
          {{Op::sub, 4, 0, 1, 0},
           {Op::expNegative, 4, 4, 0, 0},
           {Op::constant, 5, 0, 0, llvm::bit_cast<uint32_t>(scales.levels)},
           {Op::mul, 4, 4, 5, 0},
           {Op::roundEven, 4, 4, 0, 0}},
          powers, {scores, repeated(best)}, first);
  reduce(total, powers, Reduction::sum, first);
  divide(total, scales.values, first);
  Tile &last = tiles.emplace_back();
  multiplyAll(result, powers, loadRows(values, begin, part, localBudget, last), 1, last);
  finish(result, total, begin, part, localBudget, last);
}

} // namespace tessera::npu
