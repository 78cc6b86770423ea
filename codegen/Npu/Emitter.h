//===- Emitter.h - Device ops as commands of the NPU ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each op loads tiles from where its operands lie outside the chip, computes, and stores what it made; tiles are as
// large as local memory allows, and two of them share it where that lets the queues overlap.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMITTER_H
#define TESSERA_CODEGEN_NPU_EMITTER_H

#include "codegen/Npu/Stream.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera::npu {

/// Why an op cannot be emitted; it is reported at the op.
inline llvm::Error refuse(const llvm::Twine &why) { return llvm::createStringError(why); }

class Emitter {
public:
  Emitter(mlir::func::FuncOp function, const Chip &chip) : stream(chip), chip(chip), function(function) {}

  /// All ops of the function; errors of ops that cannot be emitted are reported at them.
  mlir::LogicalResult run();

  Stream stream;

private:
  llvm::Error emit(mlir::Operation *op);
  llvm::Error emitConv(device::ConvOp op);
  llvm::Error emitMatMul(device::MatMulOp op);
  llvm::Error emitPool(device::PoolOp op);
  llvm::Error emitReduce(device::ReduceOp op);
  llvm::Error emitMap(device::MapOp op);
  llvm::Error emitLut(device::LutOp op);
  llvm::Error emitSoftmax(device::SoftmaxOp op);
  llvm::Error emitCopy(device::CopyOp op);
  llvm::Error emitResize(device::ResizeOp op);
  llvm::Error emitOutputs();

  /// Where the value's bytes are outside the chip, with n, c, h, w dims of the given sizes and element strides.
  llvm::Expected<Place> place(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);
  /// The same of an operand that broadcasts to a result whose logical dims are the dims |axes| of n, c, h, w.
  llvm::Expected<Place> placeBroadcast(mlir::Value value, const Shape &shape, llvm::ArrayRef<unsigned> axes);

  /// Places of a result and of what broadcasts to it, cut into parts that have n, c, h, w dims.
  llvm::Expected<llvm::SmallVector<llvm::SmallVector<Place>>> placeParts(llvm::ArrayRef<mlir::Value> values);

  const Chip &chip;
  mlir::func::FuncOp function;
};

/// The rows of x that rows [begin, begin + size) of a result see through a window, and the padding before them.
struct Rows {
  uint32_t begin, size;
  int16_t padding;
};
Rows rowsOf(const bmodel::npu::Window &window, uint32_t rows, uint32_t begin, uint32_t size);

/// Loads |from| into local memory. Dims that it repeats (stride 0) are not repeated there, but for channels: each lane
/// has its own.
Place load(const Place &from, Area &area, Tile &tile);
void store(const Place &local, const Place &to, Tile &tile);

/// One tile of an op: false where it does not fit into the area.
using BuildTile = llvm::function_ref<bool(const Shape &begin, const Shape &size, Area &area, Tile &tile)>;

/// Cuts |whole| into tiles, as few as fit, two in local memory at once if possible, and appends them to the stream.
/// |granule|: what each dim may be cut into multiples of; 0: not at all. |reserved|: bytes at the start of local memory
/// that the tiles leave alone. Error if not even the smallest tile fits.
llvm::Error appendTiles(Stream &stream, const Shape &whole, const Shape &granule, uint64_t reserved, BuildTile build);

/// Appends a map command to the tile.
void compute(Stream &stream, const Instructions &program, const Place &y, llvm::ArrayRef<Place> operands, Tile &tile);

/// The chip's name of an element type; nothing where it has none.
std::optional<bmodel::npu::Type> typeOf(mlir::Type element);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMITTER_H
