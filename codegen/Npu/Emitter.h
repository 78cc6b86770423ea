//===- Emitter.h - Device ops as commands of the NPU ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each op takes its operands from local memory where the plan of values has them there, else it loads tiles from
// outside the chip; what it makes stays in local memory, is stored, or both.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMITTER_H
#define TESSERA_CODEGEN_NPU_EMITTER_H

#include "codegen/Npu/Folds.h"
#include "codegen/Npu/Moves.h"
#include "codegen/Npu/Nest.h"
#include "codegen/Npu/Npu.h"
#include "codegen/Npu/PlanGroups.h"
#include "codegen/Npu/Tiler.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::npu {

/// Why an op cannot be emitted; it is reported at the op.
inline llvm::Error refuse(const llvm::Twine &why) { return llvm::createStringError(why); }

class Emitter {
public:
  /// Without |groups| nothing is emitted; the plan is told how ops see their values and what room they need.
  Emitter(mlir::func::FuncOp function, Stream &stream, ValuePlan &plan, const GroupPlan *groups)
      : stream(stream), tiler(stream), plan(plan), groups(groups), chip(stream.chip), function(function),
        folds(function, stream.chip) {
    tiler.surveys = !groups;
  }

  /// All ops of the function; fails with refusals where some cannot be emitted. Where an op lacks the room that values
  /// of the plan take, some of them are dropped, and wantsRetry.
  mlir::LogicalResult run();
  bool wantsRetry = false;
  /// Is told how many ops of all are emitted.
  std::function<void(size_t done, size_t total)> progress = [](size_t, size_t) {};
  std::vector<Refusal> refusals;

private:
  llvm::Error emit(mlir::Operation *op);
  llvm::Error checkTypes(mlir::Operation *op) const;
  llvm::Error emitWith(mlir::Operation *op, llvm::function_ref<llvm::Error()> emit);
  llvm::Error emitGroup(const SliceGroup &group, llvm::ArrayRef<mlir::Operation *> ops);
  std::vector<Descriptor> openSlice(const SliceGroup &group, mlir::Operation *op, RowRange rows);
  llvm::Error emitConv(device::ConvOp op);
  llvm::Error emitConvOf(device::ConvOp op, int64_t volume);
  llvm::Error emitMatMul(device::MatMulOp op);
  llvm::Error emitMatMuls(device::MatMulOp op);
  llvm::Error emitPool(device::PoolOp op);
  llvm::Error emitPoolOfVolumes(device::PoolOp op);
  llvm::Error emitReduce(device::ReduceOp op);
  llvm::Error emitReduceRows(device::ReduceOp op, bool hasPrologue);
  llvm::Error emitSoftmaxRows(device::SoftmaxOp op);
  llvm::Error emitMap(device::MapOp op);
  llvm::Error emitLut(device::LutOp op);
  llvm::Error emitSoftmax(device::SoftmaxOp op);
  llvm::Error emitNorm(device::NormOp op);
  llvm::Error emitAttention(device::AttentionOp op);
  llvm::Error emitGather(device::GatherOp op);
  llvm::Error emitCopy(device::CopyOp op);
  llvm::Error emitPieces(device::CopyOp op, llvm::ArrayRef<unsigned> indices);
  llvm::Error emitMoves(llvm::ArrayRef<Move> moves);
  /// Emits those of |moves| that together fill rows, where that is faster, and takes them out.
  llvm::Error emitInterleaved(std::vector<Move> &moves);
  /// The same of those that take short parts of rows, or make up rows of such.
  llvm::Error emitRows(std::vector<Move> &moves);
  llvm::Expected<std::vector<Move>> placePiece(device::CopyOp op, device::PieceAttr piece);
  void findEarlyPieces();
  llvm::Error emitEarlyPieces(mlir::Operation *op);
  llvm::Error emitPiecesBehind(mlir::Operation *op);
  bool deliver(device::CopyOp op, device::PieceAttr piece);
  llvm::Error emitResize(device::ResizeOp op);
  llvm::Error emitOutputs();

  /// Where the value's bytes, or those from |offset| (in elements) on, are: with n, c, h, w dims of the given sizes and
  /// element strides.
  llvm::Expected<Place> place(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                              int64_t offset = 0) {
    return placeFor(value, sizes, strides, Access::read, offset);
  }
  /// The same of what is read outside the chip, whatever the plan has in local memory.
  llvm::Expected<Place> placeOutside(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                     int64_t offset = 0, std::optional<bmodel::npu::Type> as = std::nullopt) {
    return placeFor(value, sizes, strides, Access::readOutside, offset, as);
  }
  /// |as|: what elements are taken for, instead of their type; all is counted in it.
  llvm::Expected<Place> placeFor(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                 Access access, int64_t offset, std::optional<bmodel::npu::Type> as = std::nullopt);
  /// |rows| rows of |size| elements each, over lanes, as they lie in another value.
  llvm::Expected<Place> placeRows(const Seen &seen, int64_t rows, int64_t size) {
    return place(seen.value, {1, rows, 1, size}, {0, *seen.strideOf(size, rows), 0, *seen.strideOf(1, size)},
                 seen.offset);
  }
  llvm::Expected<llvm::SmallVector<Place>> placeTargets(llvm::ArrayRef<Seen> targets, int64_t rows, int64_t size);
  /// What a map folded into a norm reads: the norm's result, where it has no place; rows, or a row for all of them.
  struct RowsOperand {
    std::optional<Place> place;
    bool hasRows;
  };
  llvm::Expected<llvm::SmallVector<RowsOperand>> placeOperands(const Folds::Tail &tail, int64_t rows, int64_t size);
  /// Whether the op that is emitted makes a value.
  bool makes(mlir::Value value) const;
  /// Of an op and what is folded into it.
  std::string nameOf(mlir::Operation *op) const;

  /// The region that a value is in outside the chip, and where it begins there, without a type; nothing where it has no
  /// address.
  std::optional<Tensor> outsideOf(mlir::Value value);
  /// The same of local memory, where the plan has it.
  std::optional<Place> placeLocal(mlir::Value value, const View &view, int64_t offset, Access access,
                                  const Tensor &outside);
  /// The same of an operand that broadcasts to a result whose logical dims are the dims |axes| of n, c, h, w.
  llvm::Expected<Place> placeBroadcast(mlir::Value value, const Shape &shape, llvm::ArrayRef<unsigned> axes);

  /// A value of four dims as it is; of five the planes of one volume as images.
  llvm::Expected<Place> placeImages(mlir::Value value, int64_t volume);
  /// The same of what broadcasts to |dims|.
  llvm::Expected<Place> placeBroadcastImages(mlir::Value value, llvm::ArrayRef<int64_t> dims, int64_t volume);

  /// Places of a result and of what broadcasts to it, cut into parts that have n, c, h, w dims: by channels where some
  /// of them stay in local memory so, else such that all lanes have work. |cyclesEach|: of the vector unit, a vector.
  llvm::Expected<llvm::SmallVector<llvm::SmallVector<Place>>> placeParts(llvm::ArrayRef<mlir::Value> values,
                                                                         double cyclesEach);

  Stream &stream;
  Tiler tiler;
  ValuePlan &plan;
  const GroupPlan *groups;
  const Chip &chip;
  mlir::func::FuncOp function;
  const Folds folds;
  mlir::Operation *current = nullptr;
  mlir::Operation *refusedOutput = nullptr; ///< makes an output that cannot be copied
  uint32_t number = 0;                      ///< of |current|, among those that are emitted
  llvm::DenseMap<unsigned, Place> locals;   ///< by family of the plan
  /// Rows of a value that stays slice by slice.
  struct Slice {
    Place place;
    RowRange rows;
  };
  const Slice *sliceOf(mlir::Value value) const;
  llvm::DenseMap<unsigned, Slice> slices; ///< by family, of the group that is emitted
  uint32_t groupEnd = 0;                  ///< its last op
  /// Pieces of copies to results that do not wait for the copy's turn, and the ops behind which they are moved.
  using Piece = std::pair<mlir::Operation *, unsigned>;
  llvm::DenseSet<Piece> early;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Piece>> earlyBehind;
};

/// The chip's name of an element type; nothing where it has none.
std::optional<bmodel::npu::Type> typeOf(mlir::Type element);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMITTER_H
