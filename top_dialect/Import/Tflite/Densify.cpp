//===- Densify.cpp - Decodes sparse constants -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Constants.h"
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include <optional>

namespace tessera::top::tflite_import {
namespace {

constexpr int64_t kMaxBytes = int64_t(1) << 30;

/// A dim of the traversal: all |size| positions, or those that compressed rows list.
struct Level {
  int64_t size = 0;
  bool isSparse = false;
  Ints segments, indices;
  int64_t stride = 0; ///< distance in the dense tensor, in elements
};

Ints readIndices(tflite::SparseIndexVector type, const void *vector) {
  auto copy = [](const auto *values) { return values ? Ints(values->begin(), values->end()) : Ints(); };
  switch (vector ? type : tflite::SparseIndexVector::NONE) {
  case tflite::SparseIndexVector::Int32Vector:
    return copy(static_cast<const tflite::Int32Vector *>(vector)->values());
  case tflite::SparseIndexVector::Uint16Vector:
    return copy(static_cast<const tflite::Uint16Vector *>(vector)->values());
  case tflite::SparseIndexVector::Uint8Vector:
    return copy(static_cast<const tflite::Uint8Vector *>(vector)->values());
  default:
    return {};
  }
}

/// Reads the levels of a tensor with dims |shape|. A dim d with a block is traversed twice: its blocks as number d, and
/// the positions within a block as number rank + i if it is entry i of the block map.
std::optional<std::vector<Level>> readLevels(const tflite::SparsityParameters &sparsity,
                                             llvm::ArrayRef<int64_t> shape) {
  size_t blocks = sparsity.block_map() ? sparsity.block_map()->size() : 0, count = shape.size() + blocks;
  if (!sparsity.traversal_order() || !sparsity.dim_metadata() || sparsity.traversal_order()->size() != count ||
      sparsity.dim_metadata()->size() != count) {
    return std::nullopt;
  }
  std::vector<Level> levels(count);
  std::vector<int64_t> levelOf(count, -1);
  for (size_t i = 0; i < count; ++i) {
    int64_t dim = sparsity.traversal_order()->Get(i);
    if (dim < 0 || dim >= int64_t(count) || levelOf[dim] >= 0) {
      return std::nullopt;
    }
    levelOf[dim] = int64_t(i);
    const tflite::DimensionMetadata &data = *sparsity.dim_metadata()->Get(i);
    levels[i].isSparse = data.format() != tflite::DimensionType::DENSE;
    levels[i].size = data.dense_size();
    if (levels[i].isSparse) {
      levels[i].segments = readIndices(data.array_segments_type(), data.array_segments());
      levels[i].indices = readIndices(data.array_indices_type(), data.array_indices());
    }
  }
  int64_t stride = 1;
  Ints strides(shape.size());
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    strides[d] = stride;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    Level &outer = levels[levelOf[d]];
    int64_t block = 1;
    for (size_t i = 0; i < blocks; ++i) {
      if (sparsity.block_map()->Get(i) == int64_t(d)) {
        Level &inner = levels[levelOf[shape.size() + i]];
        if (block != 1 || inner.isSparse || inner.size < 1 || shape[d] % inner.size != 0) {
          return std::nullopt;
        }
        block = inner.size, inner.stride = strides[d];
      }
    }
    outer.stride = strides[d] * block;
    if (!outer.isSparse && outer.size != shape[d] / block) {
      return std::nullopt;
    }
    outer.size = shape[d] / block;
  }
  // A stride of 0 belongs to a block of a dim that does not exist.
  bool isComplete = llvm::all_of(levels, [](const Level &level) { return level.stride > 0; });
  return isComplete ? std::optional(std::move(levels)) : std::nullopt;
}

class Decoder {
public:
  Decoder(llvm::ArrayRef<Level> levels, llvm::ArrayRef<char> stored, int64_t width, std::vector<char> &dense)
      : levels(levels), stored(stored), width(width), dense(dense) {}

  /// Returns false if the file is damaged: an index is out of range, or the number of values is not the stored one.
  bool run() { return visit(0, 0, 0) && next * width == int64_t(stored.size()); }

private:
  /// Visits level |number| at position |position| of the level above and offset |offset| of the dense tensor.
  bool visit(size_t number, int64_t position, int64_t offset) {
    if (number == levels.size()) {
      return copyValue(offset);
    }
    const Level &level = levels[number];
    if (!level.isSparse) {
      for (int64_t i = 0; i < level.size; ++i) {
        if (!visit(number + 1, position * level.size + i, offset + i * level.stride)) {
          return false;
        }
      }
      return true;
    }
    if (position + 1 >= int64_t(level.segments.size())) {
      return false;
    }
    int64_t begin = level.segments[position], end = level.segments[position + 1];
    if (begin < 0 || begin > end || end > int64_t(level.indices.size())) {
      return false;
    }
    for (int64_t i = begin; i < end; ++i) {
      int64_t index = level.indices[i];
      if (index < 0 || index >= level.size || !visit(number + 1, i, offset + index * level.stride)) {
        return false;
      }
    }
    return true;
  }

  bool copyValue(int64_t offset) {
    if ((next + 1) * width > int64_t(stored.size()) || (offset + 1) * width > int64_t(dense.size())) {
      return false;
    }
    std::copy_n(stored.begin() + next++ * width, width, dense.begin() + offset * width);
    return true;
  }

  llvm::ArrayRef<Level> levels;
  llvm::ArrayRef<char> stored;
  int64_t width, next = 0;
  std::vector<char> &dense;
};

} // namespace

void densify(OperatorImporter &n) {
  if (n.failed() || !n.hasInput(0)) {
    return n.fail("it lacks its input");
  }
  const tflite::Tensor &tensor = n.file.tensor(n.op.inputs()->Get(0));
  mlir::Type element = elementType(tensor.type(), n.b.getBuilder().getContext());
  if (!tensor.sparsity() || !element || element.isInteger(1)) {
    return n.unsupported("its operand is not a sparse constant of a supported type");
  }
  Ints shape;
  if (tensor.shape()) {
    shape.assign(tensor.shape()->begin(), tensor.shape()->end());
  }
  auto type = mlir::RankedTensorType::get(shape, element);
  int64_t bytes = byteSize(type);
  auto levels = readLevels(*tensor.sparsity(), shape);
  if (!levels || bytes < 0 || bytes > kMaxBytes) {
    return n.fail("its sparse operand has a form that is not supported");
  }
  std::vector<char> dense(bytes);
  if (!Decoder(*levels, n.file.data(tensor), element.getIntOrFloatBitWidth() / 8, dense).run()) {
    return n.fail("its sparse operand is damaged");
  }
  n.setOutput(0, n.b.constant(type, std::move(dense), tensorName(n.file, n.op.outputs()->Get(0))));
}

} // namespace tessera::top::tflite_import
