//===- Folds.cpp - Copies and maps that other ops do on the way -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Folds.h"

#include "bmodel/npu/isa.h"
#include "device_dialect/Transforms/Addresses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::npu {
namespace {

/// Bytes of bursts that an operand may cost to read as it lies, over its own: a copy would read and write it once more.
constexpr int64_t kMostWasted = 2;

int64_t countOf(Value value) { return typeOf(value).getNumElements(); }

/// Whether a copy moves all of its result from one source, and may be left to others: results of the model, and what
/// shares the bytes of another value, have ways of their own.
bool isTurn(device::CopyOp copy) {
  if (copy.getFill() || copy.getPieces().size() != 1 || device::isElided(copy)) {
    return false;
  }
  std::optional<device::Address> address = device::getAddress(copy.getY());
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  return (!address || address->memory == 0) && llvm::all_of(piece.getSrcDims(), [](int64_t dim) { return dim >= 0; });
}

/// The result of a copy as it lies in its source.
Seen sourceOf(device::CopyOp copy) {
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  Value source = copy.getSources()[piece.getSource()];
  Nest from = broadcastNest({typeOf(source).getShape()});
  Seen made{source, 0, {}};
  for (auto [offset, stride] : llvm::zip_equal(piece.getSrcOffsets(), from.strides[0])) {
    made.offset += offset * stride;
  }
  made.nest.sizes.assign(piece.getSizes().begin(), piece.getSizes().end());
  made.nest.strides.resize(1);
  for (auto [dim, step] : llvm::zip_equal(piece.getSrcDims(), piece.getSrcSteps())) {
    made.nest.strides[0].push_back(step * from.strides[0][size_t(dim)]);
  }
  made.nest = made.nest.simplified();
  return made;
}

/// The source of a copy as it lies in the result; nothing where it is not all there.
std::optional<Seen> resultOf(device::CopyOp copy) {
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  Value source = copy.getSources()[piece.getSource()];
  if (countOf(source) != countOf(copy.getY())) {
    return std::nullopt; // of as many elements as it has, none is there twice
  }
  Nest to = broadcastNest({typeOf(copy.getY()).getShape()});
  Seen made{copy.getY(), 0, {}};
  made.nest.sizes.assign(typeOf(source).getShape().begin(), typeOf(source).getShape().end());
  made.nest.strides.assign(1, SmallVector<int64_t>(made.nest.sizes.size(), 0));
  for (auto [d, dim] : llvm::enumerate(piece.getSrcDims())) {
    if (piece.getSizes()[d] == 1) {
      continue;
    }
    if (piece.getSrcSteps()[d] != 1 || piece.getSizes()[d] != made.nest.sizes[size_t(dim)]) {
      return std::nullopt;
    }
    made.nest.strides[0][size_t(dim)] = to.strides[0][d];
  }
  made.nest = made.nest.simplified();
  return made;
}

Seen itself(Value value) {
  Seen made{value, 0, broadcastNest({typeOf(value).getShape()}).simplified()};
  return made;
}

/// What reads a value, reshapes left out.
void findReaders(Value value, SmallVectorImpl<OpOperand *> &readers) {
  for (OpOperand &use : value.getUses()) {
    if (auto reshape = dyn_cast<device::ReshapeOp>(use.getOwner())) {
      findReaders(reshape.getY(), readers);
    } else {
      readers.push_back(&use);
    }
  }
}

/// The dims of a row of what an op works on.
int64_t rowOf(device::NormOp norm) {
  return ShapedType::getNumElements(typeOf(norm.getX()).getShape().drop_front(norm.getAxis()));
}

/// A product by constant weights, all leading dims of which are rows.
bool isProductOfRows(device::MatMulOp product) {
  return !product.getTransA() && typeOf(product.getB()).getRank() == 2 && device::getConstantRoot(product.getB());
}

/// Whether rows and what is in them lie evenly.
bool hasEvenRows(const Seen &seen, int64_t rows, int64_t size) {
  return seen.strideOf(size, rows) && seen.strideOf(1, size);
}

/// The same of each matrix.
bool hasEvenMatrices(const Seen &seen, Value value) {
  ArrayRef<int64_t> dims = typeOf(value).getShape();
  return dims.size() >= 2 && hasEvenRows(seen, dims[dims.size() - 2], dims.back());
}

/// Whether the elements of an op's result go to evenly lying rows.
bool canWrite(Operation *op, const Seen &seen) {
  if (isa<device::MatMulOp>(op)) {
    int64_t columns = typeOf(op->getResult(0)).getShape().back();
    return hasEvenRows(seen, countOf(op->getResult(0)) / columns, columns);
  }
  if (auto norm = dyn_cast<device::NormOp>(op)) {
    return hasEvenRows(seen, countOf(norm.getY()) / rowOf(norm), rowOf(norm));
  }
  return hasEvenMatrices(seen, op->getResult(0));
}

} // namespace

std::optional<int64_t> Seen::strideOf(int64_t step, int64_t count) const {
  if (count == 1) {
    return 0;
  }
  int64_t below = 1;
  for (size_t back = 1; back <= nest.sizes.size(); ++back) {
    int64_t size = nest.sizes[nest.sizes.size() - back];
    if (step < below * size) {
      bool fits = step % below == 0 && size % (step / below * count) == 0;
      return fits ? std::optional(step / below * nest.strides[0][nest.sizes.size() - back]) : std::nullopt;
    }
    below *= size;
  }
  return std::nullopt;
}

int64_t Seen::at(int64_t index) const {
  int64_t place = offset;
  for (size_t back = 1; back <= nest.sizes.size(); ++back) {
    size_t dim = nest.sizes.size() - back;
    place += index % nest.sizes[dim] * nest.strides[0][dim];
    index /= nest.sizes[dim];
  }
  return place;
}

Seen Folds::seen(Value operand) const {
  Value value = operand;
  while (auto reshape = value.getDefiningOp<device::ReshapeOp>()) {
    value = reshape.getX();
  }
  if (auto alias = aliases.find(value); alias != aliases.end()) {
    return alias->second;
  }
  auto copy = value.getDefiningOp<device::CopyOp>();
  return copy && isFolded(copy) && !areStored.contains(copy) ? sourceOf(copy) : itself(operand);
}

const Folds::Tail *Folds::tailOf(Operation *op) const {
  auto found = tails.find(op);
  return found == tails.end() ? nullptr : &found->second;
}

SmallVector<Operation *> Folds::readThrough(Operation *op) const {
  SmallVector<Operation *> copies;
  for (Value operand : op->getOperands()) {
    while (auto reshape = operand.getDefiningOp<device::ReshapeOp>()) {
      operand = reshape.getX();
    }
    if (Operation *copy = operand.getDefiningOp(); copy && isFolded(copy)) {
      copies.push_back(copy);
    }
  }
  return copies;
}

/// Whether an op can read one of its operands so, and at no more than a copy would cost.
bool Folds::canRead(OpOperand &use, const Seen &seen) const {
  Operation *user = use.getOwner();
  Value operand = use.get();
  if (auto norm = dyn_cast<device::NormOp>(user)) {
    return &use == &norm.getXMutable() && hasEvenRows(seen, countOf(norm.getX()) / rowOf(norm), rowOf(norm));
  }
  if (auto product = dyn_cast<device::MatMulOp>(user)) {
    bool isExtra = llvm::is_contained(product.getExtras(), operand),
         isWhole = countOf(operand) == countOf(product.getY());
    int64_t columns = typeOf(isExtra ? product.getY() : product.getA()).getShape().back();
    int64_t rows = countOf(operand) / columns, size = typeOf(operand).getElementTypeBitWidth() / 8;
    if (!isProductOfRows(product) || (isExtra ? !isWhole : operand != product.getA()) ||
        !hasEvenRows(seen, rows, columns)) {
      return false;
    }
    int64_t together = *seen.strideOf(columns, rows) == 1 ? rows : *seen.strideOf(1, columns) == 1 ? columns : 1;
    return together * size >= int64_t(chip.burstBytes);
  }
  auto attention = dyn_cast<device::AttentionOp>(user);
  if (!attention || operand == attention.getMask() || !hasEvenMatrices(seen, operand)) {
    return false;
  }
  int64_t columns = typeOf(operand).getShape().back(), burst = chip.burstBytes;
  int64_t bytes = columns * int64_t(llvm::divideCeil(typeOf(operand).getElementTypeBitWidth(), 8));
  int64_t apart = bytes % burst == 0 ? 0 : burst; // a row that begins inside a burst
  return *seen.strideOf(1, columns) == 1 && int64_t(llvm::alignTo(bytes, burst)) + apart <= kMostWasted * bytes;
}

void Folds::foldIntoReaders(device::CopyOp copy) {
  SmallVector<OpOperand *> readers;
  findReaders(copy.getY(), readers);
  if (!isTurn(copy) || readers.empty()) {
    return;
  }
  Seen source = sourceOf(copy);
  if (llvm::all_of(readers, [&](OpOperand *use) { return canRead(*use, source); })) {
    folded.insert(copy);
  }
}

/// Whether a result of the model takes the place of another operand than |result|: others may read that until the map's
/// turn.
static bool overwritesAnother(device::MapOp map, Value result) {
  auto inplace = map->getAttrOfType<IntegerAttr>(device::DeviceDialect::kInplaceAttr);
  std::optional<device::Address> address = device::getAddress(map.getY());
  return inplace && address && address->memory != 0 && map.getInputs()[size_t(inplace.getInt())] != result;
}

/// Whether the op in front can compute |map|: its other operands are there, and broadcast to rows.
bool Folds::addMap(Operation *op, Tail &tail) const {
  Value result = op->getResult(0);
  if (isa<device::MatMulOp>(op) || !typeOf(result).getElementType().isF32()) {
    return false; // it has an epilogue for that; what the map reads has been rounded
  }
  SmallVector<OpOperand *> readers;
  findReaders(result, readers);
  auto map = readers.empty() ? device::MapOp() : dyn_cast<device::MapOp>(readers.front()->getOwner());
  if (!map || map.getInputs().size() > bmodel::npu::kMapOperands || countOf(map.getY()) != countOf(result) ||
      overwritesAnother(map, readers.front()->get()) || llvm::any_of(readers, [&](OpOperand *use) {
        return use->getOwner() != map || use->get() != readers[0]->get();
      })) {
    return false;
  }
  auto norm = dyn_cast<device::NormOp>(op);
  SmallVector<Interval> intervals;
  for (Value input : map.getInputs()) {
    intervals.push_back(intervalOf(typeOf(input).getElementType()));
    if (input == readers[0]->get()) {
      continue;
    }
    bool isThere =
        !input.getDefiningOp() || device::getConstantRoot(input) || input.getDefiningOp()->isBeforeInBlock(op);
    int64_t count = countOf(input), last = typeOf(input).getRank() ? typeOf(input).getShape().back() : 1;
    bool isOfRow = norm && count == last && last == rowOf(norm);
    if (!norm || !isThere || (count != 1 && !isOfRow && count != countOf(result))) {
      return false;
    }
  }
  // Rows of all operands and of the result are in a lane at once.
  size_t held = norm ? norm->getNumOperands() + map.getInputs().size() : 0;
  if (norm && held * size_t(rowOf(norm)) * sizeof(float) > chip.laneBytes) {
    return false;
  }
  llvm::Expected<Instructions> program = programOf(map.getBody(), intervals, typeOf(map.getY()).getElementType());
  if (!program) {
    llvm::consumeError(program.takeError());
    return false;
  }
  tail.map = map, tail.mapped = readers[0]->get(), tail.program = std::move(*program);
  tail.ops.push_back(map);
  return true;
}

/// Copies of the result; it itself where others read it who do not find it in one of the copies.
void Folds::addTargets(Operation *op, Value result, Tail &tail) {
  SmallVector<OpOperand *> readers, others;
  findReaders(result, readers);
  SmallVector<Operation *> copies;
  for (OpOperand *use : readers) {
    auto copy = dyn_cast<device::CopyOp>(use->getOwner());
    std::optional<Seen> seen = copy && isTurn(copy) && !isFolded(copy) ? resultOf(copy) : std::nullopt;
    if (seen && canWrite(op, *seen)) {
      tail.targets.push_back(std::move(*seen)), copies.push_back(copy);
    } else {
      others.push_back(use);
    }
  }
  bool finds =
      !copies.empty() && llvm::all_of(others, [&](OpOperand *use) { return canRead(*use, tail.targets.front()); });
  if (!isa<device::NormOp>(op) && (!finds || copies.size() != 1)) { // others store their results once
    copies.clear(), tail.targets.clear(), finds = false;
  }
  if (finds) {
    aliases.try_emplace(result, tail.targets.front());
  } else {
    tail.targets.insert(tail.targets.begin(), itself(result));
  }
  llvm::append_range(tail.ops, copies);
  areStored.insert(copies.begin(), copies.end());
}

void Folds::foldBehind(Operation *op) {
  Tail tail;
  Value result = addMap(op, tail) ? tail.map.getY() : op->getResult(0);
  addTargets(op, result, tail);
  if (!tail.ops.empty()) {
    folded.insert(tail.ops.begin(), tail.ops.end());
    tails.try_emplace(op, std::move(tail));
  }
}

Folds::Folds(func::FuncOp function, const bmodel::npu::Chip &chip) : chip(chip) {
  for (auto copy : function.getBody().front().getOps<device::CopyOp>()) {
    foldIntoReaders(copy);
  }
  for (Operation &op : function.getBody().front()) {
    auto product = dyn_cast<device::MatMulOp>(op);
    if (isa<device::NormOp, device::AttentionOp>(op) || (product && isProductOfRows(product))) {
      foldBehind(&op);
    }
  }
}

} // namespace tessera::npu
