//===- OperandPlacer.h - Where operands and results are ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H
#define TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H

#include "codegen/Npu/FusedOps.h"
#include "codegen/Npu/PlanGroups.h"
#include "codegen/Npu/Stream.h"

namespace tessera::npu {

/// Finds what the op that is emitted reads and writes: in local memory where the plan of values has it there, else
/// outside the chip. Sizes and strides are those of n, c, h, w, in elements.
class OperandPlacer {
public:
  /// |surveys|: all is outside, and the plan is told how it is seen.
  OperandPlacer(mlir::func::FuncOp function, Stream &stream, ValuePlan &plan, const FusedOps &fusedOps, bool surveys)
      : function(function), stream(stream), plan(plan), fusedOps(fusedOps), chip(stream.chip), surveys(surveys) {}

  /// From here on operands are those of |op|, which is the program's |number|-th. Null: of the function's end.
  void enter(mlir::Operation *op, uint32_t number) { current = op, this->number = number; }

  /// Where the bytes of a value, or those from |offset| (in elements) on, are.
  llvm::Expected<TileView> place(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                 int64_t offset = 0) {
    return placeAs(value, {sizes, strides, offset, Access::read, std::nullopt});
  }
  /// The same of what is read outside the chip, whatever the plan has in local memory. |as|: what elements are taken
  /// for, instead of their type; all is counted in it.
  llvm::Expected<TileView> placeOutside(mlir::Value value, llvm::ArrayRef<int64_t> sizes,
                                        llvm::ArrayRef<int64_t> strides, int64_t offset = 0,
                                        std::optional<bmodel::npu::Type> as = std::nullopt) {
    return placeAs(value, {sizes, strides, offset, Access::readOutside, as});
  }
  /// The elements of a value one after another, taken for |as| where that is told.
  llvm::Expected<TileView> placeFlat(mlir::Value value, int64_t count, std::optional<bmodel::npu::Type> as) {
    return placeAs(value, {{1, 1, 1, count}, {0, 0, 0, 1}, 0, Access::read, as});
  }
  /// |rows| rows of |size| elements each, over lanes, as they lie in another value.
  llvm::Expected<TileView> placeRows(const StridedView &seen, int64_t rows, int64_t size) {
    return place(seen.value, {1, rows, 1, size}, {0, *seen.strideOf(size, rows), 0, *seen.strideOf(1, size)},
                 seen.offset);
  }
  /// A value of four dims as it is; of five the planes of one volume as images.
  llvm::Expected<TileView> placeImages(mlir::Value value, int64_t volume) {
    return placeBroadcastImages(value, typeOf(value).getShape(), volume);
  }
  /// The same of what broadcasts to |dims|.
  llvm::Expected<TileView> placeBroadcastImages(mlir::Value value, llvm::ArrayRef<int64_t> dims, int64_t volume);

  /// Whether the op that is emitted makes a value.
  bool makes(mlir::Value value) const;
  /// Whether what is seen of a value so is in local memory, whole or slice by slice.
  bool isResident(mlir::Value value, const View &view) const;
  /// The region that a value is in outside the chip, and where it begins there, without a type; nothing where it has no
  /// address.
  std::optional<Tensor> outsideOf(mlir::Value value);

  /// Begins a group of ops that run slice by slice, |end| being its last op.
  void openGroup(uint32_t end) { groupEnd = end; }
  void closeGroup() { slices.clear(); }
  /// A buffer for rows of the op's result, where these stay slice by slice: with the rows that are there already. The
  /// commands move those from where they were.
  std::vector<Descriptor> openSlice(const SliceGroup &group, mlir::Operation *op, RowRange rows);

private:
  /// How a value is seen, and what for.
  struct Request {
    llvm::ArrayRef<int64_t> sizes, strides;
    int64_t offset;
    Access access;
    std::optional<bmodel::npu::Type> as;
  };
  /// Rows of a value that stays slice by slice.
  struct Slice {
    TileView place;
    RowRange rows;
  };

  llvm::Expected<TileView> placeAs(mlir::Value value, const Request &request);
  llvm::Expected<Tensor> baseOf(mlir::Value value);
  std::optional<TileView> placeLocal(mlir::Value value, const View &view, int64_t offset, Access access,
                                     const Tensor &outside);
  TileView placeInSlice(mlir::Value value, const Slice &slice, const View &view, int64_t offset, Access access,
                        const Tensor &outside) const;
  const Slice *sliceOf(mlir::Value value) const;

  mlir::func::FuncOp function;
  Stream &stream;
  ValuePlan &plan;
  const FusedOps &fusedOps;
  const Chip &chip;
  bool surveys;
  mlir::Operation *current = nullptr;
  uint32_t number = 0;
  llvm::DenseMap<unsigned, TileView> locals; ///< by alias set of the plan
  llvm::DenseMap<unsigned, Slice> slices;    ///< by alias set, of the group that is emitted
  uint32_t groupEnd = 0;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H
