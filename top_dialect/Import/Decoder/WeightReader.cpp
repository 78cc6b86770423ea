//===- WeightReader.cpp - Weights of a checkpoint as Top values -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Decoder/WeightReader.h"

#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::top {
namespace {

std::string shapeText(ArrayRef<int64_t> shape) {
  auto texts = llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); });
  return "[" + llvm::join(texts, ", ") + "]";
}

/// Moves integers from 0 to 15 to -8 to 7, the range of signed 4-bit weights.
void centre(gguf::GroupedNumbers &numbers) {
  if (numbers.minima.empty() || llvm::any_of(numbers.integers, [](char q) { return q < 0 || q > 15; })) {
    return;
  }
  llvm::for_each(numbers.integers, [](char &q) { q = char(q - 8); });
  for (auto [minimum, scale] : llvm::zip_equal(numbers.minima, numbers.scales)) {
    minimum += 8 * scale;
  }
}

/// Gives groups whose scale is 0 the scale 1 and integers of 0: kernels take scales other than 0 only.
void removeZeroScales(gguf::GroupedNumbers &numbers) {
  for (auto [i, scale] : llvm::enumerate(numbers.scales)) {
    if (scale == 0) {
      scale = 1;
      std::fill_n(numbers.integers.begin() + int64_t(i) * numbers.group, numbers.group, 0);
    }
  }
}

/// Returns the numbers of a tensor as kernels take them. Gives the memory of |file|, which holds them, back.
gguf::GroupedNumbers readKernelGroups(const gguf::Tensor &tensor, const llvm::MemoryBuffer &file) {
  gguf::GroupedNumbers numbers = gguf::readGroups(tensor);
  if (isMapped(file)) {
    releasePages(tensor.bytes);
  }
  centre(numbers);
  removeZeroScales(numbers);
  return numbers;
}

/// Returns the numbers of a tensor as the bytes of an f32 constant. Gives the memory of |file|, which holds them, back.
std::vector<char> readBytesOfFloats(const gguf::Tensor &tensor, const llvm::MemoryBuffer &file) {
  std::vector<char> bytes(tensor.count() * sizeof(float)); // operator new aligns it for any number
  gguf::readFloats(tensor, {reinterpret_cast<float *>(bytes.data()), size_t(tensor.count())});
  if (isMapped(file)) {
    releasePages(tensor.bytes);
  }
  return bytes;
}

} // namespace

const llvm::MemoryBuffer &WeightReader::fileOf(const gguf::Tensor &tensor) const {
  return **llvm::find_if(checkpoint.files, [&](const std::shared_ptr<llvm::MemoryBuffer> &file) {
    return tensor.bytes.data() >= file->getBufferStart() && tensor.bytes.data() <= file->getBufferEnd();
  });
}

const gguf::Tensor *WeightReader::find(StringRef name, ArrayRef<int64_t> shape) {
  auto found = checkpoint.tensors.find(name);
  if (found == checkpoint.tensors.end()) {
    graph.fail("the tensor '" + name + "' is missing");
    return nullptr;
  }
  if (ArrayRef<int64_t>(found->second.shape) != shape) {
    graph.fail("the tensor '" + name + "' has the shape " + shapeText(found->second.shape) +
               ", but the hyperparameters of the model imply " + shapeText(shape));
    return nullptr;
  }
  used.insert(name);
  return &found->second;
}

int64_t WeightReader::dim(const Twine &name, unsigned axis) {
  auto found = checkpoint.tensors.find(name.str());
  if (found == checkpoint.tensors.end() || found->second.shape.size() != 2) {
    graph.fail("the tensor '" + name + "' is missing or not a matrix");
    return 1;
  }
  return found->second.shape[axis];
}

std::vector<float> WeightReader::floats(StringRef name, ArrayRef<int64_t> shape) {
  const gguf::Tensor *tensor = find(name, shape);
  std::vector<float> values(ShapedType::getNumElements(shape));
  if (tensor) {
    gguf::readFloats(*tensor, values);
  }
  return values;
}

WeightReader::Parts WeightReader::parts(StringRef name, ArrayRef<int64_t> shape) {
  auto [entry, isNew] = known.try_emplace(name);
  Parts &result = entry->second;
  const gguf::Tensor *tensor = isNew ? find(name, shape) : nullptr;
  if (!isNew || !tensor) {
    result.values = result.values ? result.values : graph.scalar(graph.f32(), 0);
    return result;
  }
  OpBuilder &b = graph.getBuilder();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(b.getInsertionBlock()); // later readers may be anywhere
  const llvm::MemoryBuffer &file = fileOf(*tensor);
  const bool isAligned = reinterpret_cast<uintptr_t>(tensor->bytes.data()) % alignof(float) == 0;
  const bool isPlain = !tensor->isTransposed && tensor->addend == 0;
  if (tensor->format->code == gguf::kF32 && isAligned && isPlain) {
    result.values =
        graph.constant(RankedTensorType::get(shape, graph.f32()), tensor->bytes, files, isMapped(file), name);
    return result;
  }
  if (!tensor->format->decode || !keepsFormats) {
    result.values = graph.lazyConstant(
        RankedTensorType::get(shape, graph.f32()),
        [tensor = *tensor, &file, owner = files] { return readBytesOfFloats(tensor, file); }, name);
    return result;
  }
  const gguf::GroupedNumbers numbers = readKernelGroups(*tensor, file);
  const int64_t groups = shape[1] / numbers.group;
  Value integers = graph.lazyConstant(
      RankedTensorType::get({shape[0], groups, numbers.group}, b.getI8Type()),
      [tensor = *tensor, &file, owner = files] { return readKernelGroups(tensor, file).integers; }, name);
  Value scales = graph.constant({shape[0], groups, 1}, numbers.scales, name.str() + ".scales");
  result.values = graph.create<DequantizeOp>(integers, scales, graph.scalar(b.getI8Type(), 0));
  if (!numbers.minima.empty()) {
    result.minima = graph.constant({shape[0], groups, 1}, numbers.minima, name.str() + ".minima");
  }
  return result;
}

Value WeightReader::matrix(const Twine &name, ArrayRef<int64_t> shape) {
  Parts found = parts(name.str(), shape);
  Value whole = found.minima ? graph.add(found.values, found.minima) : found.values;
  return graph.hasFailed() || Shape(whole).rank() == 2 ? whole : graph.reshape(whole, {shape[0], shape[1]});
}

Value WeightReader::rows(StringRef name, ArrayRef<int64_t> shape, Value indices) {
  Parts found = parts(name, shape);
  Value picked = graph.create<GatherOp>(found.values, indices, 0);
  if (found.minima) {
    picked = graph.add(picked, graph.create<GatherOp>(found.minima, indices, 0));
  }
  if (graph.hasFailed()) {
    return picked;
  }
  SmallVector<Dim> sizes = Shape(indices).dims();
  sizes.push_back(shape[1]);
  return Shape(picked).rank() == sizes.size() ? picked : graph.reshape(picked, sizes);
}

Value WeightReader::vector(const Twine &name, int64_t size) {
  return graph.constant({size}, floats(name.str(), {size}), name.str());
}

Value WeightReader::optionalVector(const Twine &name, int64_t size) {
  return has(name.str()) ? vector(name, size) : Value();
}

llvm::Error WeightReader::checkAllUsed() const {
  std::vector<std::string> unused;
  for (StringRef name : checkpoint.tensors.keys()) {
    if (!used.contains(name)) {
      unused.push_back(name.str());
    }
  }
  llvm::sort(unused);
  constexpr size_t kShown = 5;
  const size_t count = unused.size();
  unused.resize(std::min(count, kShown));
  return count == 0 ? llvm::Error::success()
                    : unsupported(llvm::formatv("the network of '{0}' does not use {1} tensors of the model: {2}{3}",
                                                checkpoint.architecture, count, llvm::join(unused, ", "),
                                                count > kShown ? ", .." : ""));
}

} // namespace tessera::top
