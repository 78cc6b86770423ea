//===- Attention.cpp - Attention on the NPU -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Finds regular strides over batches and places the operands accordingly. AttentionTiles.cpp builds the tiles.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Contraction/AttentionEmission.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"
#include "top_dialect/IR/MaskedRows.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::npu {
namespace {

/// Returns the matrices of operand |of|, whose elements lie as |seen| says.
Matrices matricesOf(const StridedView &seen, Value of, ArrayRef<int64_t> batch) {
  SmallVector<int64_t> dims(npu::typeOf(of).getShape());
  dims.insert(dims.begin(), dims.size() < 2 ? 2 - dims.size() : 0, 1);
  int64_t height = dims[dims.size() - 2], width = dims.back();
  Matrices result{seen.value, batchesOf(ArrayRef(dims).drop_back(2), batch), *seen.strideOf(width, height),
                  *seen.strideOf(1, width)};
  for (int64_t &begin : result.begins) {
    begin = seen.at(begin * height * width);
  }
  return result;
}

/// Returns true if the batches of each group are evenly spaced.
bool hasEvenGroups(const Matrices &of, int64_t group) {
  for (size_t first = 0; first < of.begins.size(); first += size_t(group)) {
    if (!affineOf(ArrayRef(of.begins).slice(first, size_t(group)), group)) {
      return false;
    }
  }
  return true;
}

/// Returns the row stride if the rows of all batches of a group form one dim.
std::optional<int64_t> rowsOfGroup(const Matrices &of, const AttentionSizes &sizes) {
  int64_t byInner = sizes.group > 1 ? of.begins[1] - of.begins[0] : 0;
  if (sizes.group == 1 || byInner == sizes.queries * of.byRow) {
    return of.byRow;
  }
  return sizes.queries == 1 ? std::optional(byInner) : std::nullopt;
}

} // namespace

AttentionEmission::AttentionEmission(device::AttentionOp op, EmissionContext &context)
    : op(op), context(context), consumers(context.fusedOps.consumersOf(op)) {
  ArrayRef<int64_t> qDims = npu::typeOf(op.getQ()).getShape(), batch = qDims.drop_back(2);
  auto matrices = [&](Value value) { return matricesOf(context.fusedOps.viewOf(value), value, batch); };
  q = matrices(op.getQ()), k = matrices(op.getK()), v = matrices(op.getV());
  y = consumers ? matricesOf(consumers->targets.front(), op.getY(), batch) : matrices(op.getY());
  ArrayRef<int64_t> kDims = npu::typeOf(op.getK()).getShape();
  sizes = {.batches = ShapedType::getNumElements(batch),
           .queries = qDims[batch.size()],
           .depth = qDims.back(),
           .keys = kDims[kDims.size() - 2],
           .features = npu::typeOf(op.getV()).getShape().back(),
           .group = groupOf(k.begins, v.begins),
           .hasMask = bool(op.getMask()),
           .ofIntegers = op.isOfIntegers(),
           .zeroesMaskedRows = top::zeroesMaskedRows(op)};
  if (sizes.hasMask) {
    mask = matrices(op.getMask());
    sizes.group = affineOf(mask.begins, sizes.group) ? sizes.group : 1;
  }
  sizes.group = hasEvenGroups(q, sizes.group) && hasEvenGroups(y, sizes.group) ? sizes.group : 1;
  findCommon();
}

/// Finds regular strides over batches.
void AttentionEmission::findCommon() {
  group = sizes.group, outer = sizes.batches / group;
  kAt = affineOf(k.begins, group), vAt = affineOf(v.begins, group);
  qAt = affineOf(q.begins, group), yAt = affineOf(y.begins, group);
  maskAt = sizes.hasMask ? affineOf(mask.begins, group) : Affine{0, 0, 0};
  qRows = rowsOfGroup(q, sizes), yRows = rowsOfGroup(y, sizes);
  if (!qAt || !yAt) {
    sizes.runs = std::max({runsOf(q.begins), runsOf(k.begins), runsOf(v.begins), runsOf(y.begins)});
  }
}

/// Returns true if batches can be distributed over lanes: their operands must be evenly spaced.
bool AttentionEmission::canWorkByBatch() const {
  // The rows of a group's batches are one dim, if the mask allows it.
  bool isOneDim = maskAt && (group == 1 || sizes.queries == 1 || (mask.byRow == 0 && maskAt->byInner == 0));
  return kAt && vAt && isOneDim && qAt && yAt && qRows && yRows;
}

/// Returns true if batches over lanes are faster, i.e. if there are few queries.
bool AttentionEmission::worksByBatch() const {
  int64_t lanes = context.chip.lanes;
  return canWorkByBatch() &&
         llvm::divideCeil(outer, lanes) * sizes.queries < outer * llvm::divideCeil(sizes.queries, lanes);
}

/// Places an operand as n, c, h, w. Data that batches share has no stride along n.
llvm::Error AttentionEmission::placeAll(SmallVector<TileView> &to, const Matrices &of, std::optional<Affine> at,
                                        const Layout &layout) {
  at = isBlocked ? std::nullopt : at;
  int64_t count = at ? 1 : isBlocked ? sizes.batches : outer;
  for (int64_t n = 0; n < count; ++n) {
    SmallVector<int64_t> view = {byBatch || !at ? 1 : outer}, steps = {byBatch || !at ? 0 : at->byOuter};
    llvm::append_range(view, layout.sizes), llvm::append_range(steps, layout.strides);
    llvm::Expected<TileView> placed =
        context.operands.placeOutside(of.value, view, steps, at ? at->base : of.begins[size_t(n)]);
    if (!placed) {
      return placed.takeError();
    }
    to.push_back(*placed);
  }
  return llvm::Error::success();
}

/// Places values with their rows over lanes, the layout in which matmuls leave them.
llvm::Error AttentionEmission::placeValueRows(SmallVector<TileView> &to) {
  int64_t view[] = {outer, sizes.keys, 1, sizes.features};
  return addRows(to, v, view, {vAt->byOuter, v.byRow, 0, v.byColumn}, vAt->base, false);
}

/// Places keys, values and the mask, all in off-chip memory except integer values.
llvm::Error AttentionEmission::placeKeys(AttentionTiles &tiles) {
  int64_t over = byBatch ? outer : 1, kStep = byBatch ? kAt->byOuter : 0, vStep = byBatch ? vAt->byOuter : 0;
  if (llvm::Error error =
          placeAll(tiles.keys, k, kAt, {{over, sizes.depth, sizes.keys}, {kStep, k.byColumn, k.byRow}})) {
    return error;
  }
  if (llvm::Error error =
          sizes.ofIntegers && vAt
              ? placeValueRows(tiles.values)
              : placeAll(tiles.values, v, vAt, {{over, sizes.keys, sizes.features}, {vStep, v.byRow, v.byColumn}})) {
    return error;
  }
  return placeMasks(tiles);
}

llvm::Error AttentionEmission::placeMasks(AttentionTiles &tiles) {
  if (!sizes.hasMask) {
    return llvm::Error::success();
  }
  int64_t byRow = group == 1 ? mask.byRow : sizes.queries == 1 && maskAt ? maskAt->byInner : 0;
  int64_t byC = byBatch ? maskAt->byOuter : mask.byRow, byH = byBatch ? byRow : maskAt ? maskAt->byInner : 0;
  if (isBlocked) {
    byC = mask.byRow * inner, byH = mask.byRow;
  }
  return placeAll(tiles.masks, mask, maskAt, {{rows, inner, sizes.keys}, {byC, byH, mask.byColumn}});
}

llvm::Error AttentionEmission::addRows(SmallVector<TileView> &to, const Matrices &of, ArrayRef<int64_t> view,
                                       ArrayRef<int64_t> steps, int64_t offset, bool outside) {
  llvm::Expected<TileView> placed = outside && !context.operands.makes(of.value)
                                        ? context.operands.placeOutside(of.value, view, steps, offset)
                                        : context.operands.place(of.value, view, steps, offset);
  if (placed) {
    to.push_back(*placed);
  }
  return placed ? llvm::Error::success() : placed.takeError();
}

/// Places queries or results. Evenly spaced batches share one view; other batches get one view each, in off-chip
/// memory.
llvm::Error AttentionEmission::placeRows(SmallVector<TileView> &to, const Matrices &of, std::optional<Affine> at,
                                         int64_t byRow, int64_t width) {
  if (byBatch) {
    return addRows(to, of, {1, outer, inner, width}, {0, at->byOuter, byRow, of.byColumn}, at->base, false);
  }
  bool areBlocksEven = isBlocked && affineOf(of.begins, 1) && // each batch continues where the previous one ends
                       (sizes.batches == 1 || of.begins[1] - of.begins[0] == sizes.queries * of.byRow);
  if (areBlocksEven) {
    return addRows(to, of, {1, sizes.batches * blocks, inner, width}, {0, inner * of.byRow, of.byRow, of.byColumn},
                   of.begins[0], false);
  }
  if (at && !isBlocked) {
    return addRows(to, of, {outer, rows, inner, width}, {at->byOuter, of.byRow, at->byInner, of.byColumn}, at->base,
                   false);
  }
  return placeEachBatch(to, of, width);
}

llvm::Error AttentionEmission::placeEachBatch(SmallVector<TileView> &to, const Matrices &of, int64_t width) {
  if (context.operands.makes(of.value) && context.surveys()) {
    context.plan.keepOutside(of.value);
  }
  for (int64_t n = 0; n < (isBlocked ? sizes.batches : outer); ++n) {
    auto first = size_t(isBlocked ? n : n * group);
    int64_t byInner = !isBlocked && group > 1 ? of.begins[first + 1] - of.begins[first] : 0;
    int64_t steps[] = {0, isBlocked ? inner * of.byRow : of.byRow, isBlocked ? of.byRow : byInner, of.byColumn};
    if (llvm::Error error = addRows(to, of, {1, rows, inner, width}, steps, of.begins[first], true)) {
      return error;
    }
  }
  return llvm::Error::success();
}

AttentionAttr AttentionEmission::choose() {
  int64_t most = blocksOf(sizes, context.chip);
  AttentionMapping way = sizes.ofIntegers ? AttentionMapping::matrix
                         : worksByBatch() ? AttentionMapping::batches
                                          : chooseMapping(sizes, most, context.chip);
  return AttentionAttr::get(op.getContext(), way, most);
}

AttentionScales AttentionEmission::scales() {
  AttentionScales result = {.scores = float(op.getScale().convertToDouble())};
  if (sizes.ofIntegers) {
    result.values = float(op.getValueScale()->convertToDouble()), result.levels = float(*op.getLevels());
  }
  return result;
}

void AttentionEmission::setMapped(AttentionTiles &tiles) const {
  if (device::MapOp map = consumers ? consumers->map : device::MapOp()) {
    tiles.mapped = consumers->program, tiles.mappedOperands = map.getInputs().size();
  }
}

llvm::Error AttentionEmission::run() {
  bool isUneven = sizes.runs || !kAt || !vAt || !maskAt;
  if (int64_t period = sizes.ofIntegers && isUneven ? findPeriod() : 1; period > 1) {
    return runInParts(period);
  }
  Tiler &tiler = context.tiler;
  auto form = op->getAttrOfType<AttentionAttr>(NpuDialect::kAttentionAttr);
  if (!form) {
    return reject("does not have npu.attention: run npu-choose-forms first");
  }
  AttentionMapping way = form.getMapping();
  blocks = form.getBlocks(), byBatch = way == AttentionMapping::batches, isBlocked = way == AttentionMapping::blocks;
  if ((byBatch && !canWorkByBatch()) || (isBlocked && sizes.queries % blocks != 0)) {
    return reject("has an npu.attention that its batches or queries do not allow");
  }
  if (sizes.ofIntegers && (way != AttentionMapping::matrix || std::max(sizes.keys, sizes.features) > UINT16_MAX)) {
    return reject("is attention of integers, which requires the mapping 'matrix' and at most 65535 keys and features");
  }
  AttentionTiles tiles(sizes, way, uint32_t(blocks), tiler, scales());
  setMapped(tiles);
  rows = byBatch ? outer : sizes.queries, inner = byBatch ? group * sizes.queries : group;
  if (isBlocked) {
    rows = blocks, inner = sizes.queries / blocks;
  }
  if (llvm::Error error = placeKeys(tiles)) {
    return error;
  }
  if (llvm::Error error = placeRows(tiles.q, q, qAt, qRows.value_or(0), sizes.depth)) {
    return error;
  }
  if (llvm::Error error = placeRows(tiles.y, y, yAt, yRows.value_or(0), sizes.features)) {
    return error;
  }
  tiles.whole = Shape{{uint32_t(byBatch || isBlocked ? 1 : outer), uint32_t(isBlocked ? sizes.batches * blocks : rows),
                       uint32_t(inner), 1}};
  if (!tiles.choose()) {
    return reject("needs more than the " + llvm::Twine(tiler.budget) + " bytes of a lane for all scores of a query");
  }
  tiler.appendTiles(tiler.surveys ? std::vector<Tile>() : tiles.make(), tiles.minimum(), tiles.requirement());
  return llvm::Error::success();
}

namespace {

bool hasForm(Operation *op) {
  auto attention = cast<device::AttentionOp>(op);
  return !attention.getViews() && attention.getEpilogue().empty() &&
         (attention.isOfIntegers() ||
          llvm::all_of(op->getOperands(), [](Value each) { return npu::typeOf(each).getElementType().isF32(); }));
}

struct AttentionModel : EmissionInterface::ExternalModel<AttentionModel, device::AttentionOp> {
  void chooseForm(Operation *op, EmissionContext &context) const {
    if (hasForm(op)) {
      op->setAttr(NpuDialect::kAttentionAttr, AttentionEmission(cast<device::AttentionOp>(op), context).choose());
    }
  }
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    if (!hasForm(op)) {
      return reject("is attention with operands other than f32 or int8, with views or with an epilogue, which is not "
                    "supported yet");
    }
    return AttentionEmission(cast<device::AttentionOp>(op), context).run();
  }
  bool spreadsRows(Operation *) const { return true; }
};

/// Largest ratio of burst bytes to operand bytes at which an operand is read as it lies. A copy would read and write it
/// once more.
constexpr int64_t kMostWasted = 2;

struct AttentionFusion : RowFusionInterface::ExternalModel<AttentionFusion, device::AttentionOp> {
  bool canRead(Operation *op, OpOperand &use, const StridedView &view) const {
    return use.get() != cast<device::AttentionOp>(op).getMask() && fusion::hasEvenMatrices(view, use.get());
  }
  bool paysToRead(Operation *, OpOperand &use, const StridedView &view, const Chip &chip) const {
    RankedTensorType type = npu::typeOf(use.get());
    int64_t columns = type.getShape().back(), burst = chip.burstBytes;
    int64_t bytes = columns * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
    int64_t apart = bytes % burst == 0 || burst % bytes == 0 ? 0 : burst; // rows that begin inside a burst
    return *view.strideOf(1, columns) == 1 && int64_t(llvm::alignTo(bytes, burst)) + apart <= kMostWasted * bytes;
  }
  bool canStore(Operation *op, const StridedView &view) const {
    return fusion::hasEvenMatrices(view, op->getResult(0));
  }
  bool canCompute(Operation *op, device::MapOp map, Value mapped, const Chip &) const {
    return npu::typeOf(op->getResult(0)).getElementType().isF32() &&
           llvm::all_of(map.getInputs(), [&](Value input) { return input == mapped; });
  }
};

} // namespace

void attachAttentionModels(MLIRContext *context) {
  device::AttentionOp::attachInterface<AttentionModel, AttentionFusion>(*context);
}

} // namespace tessera::npu
