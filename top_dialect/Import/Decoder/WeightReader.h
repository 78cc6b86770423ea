//===- WeightReader.h - Weights of a checkpoint as Top values ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_DECODER_WEIGHTREADER_H
#define TESSERA_TOP_DIALECT_IMPORT_DECODER_WEIGHTREADER_H

#include "top_dialect/Builder/GraphBuilder.h"
#include "top_dialect/Import/Decoder/DecoderConfig.h"

#include "llvm/ADT/StringSet.h"

namespace tessera::top {

/// Creates the constants of a checkpoint's tensors, each once. Errors go to the graph builder.
///
/// A matrix [N, K] in a format with groups is `reshape(dequantize(integers [N, K / group, group], scales [N, K / group,
/// 1], 0))`, with `add(.., minima [N, K / group, 1])` before the reshape for formats with minima.
class WeightReader {
public:
  WeightReader(GraphBuilder &graph, const Checkpoint &checkpoint, bool keepsFormats)
      : graph(graph), checkpoint(checkpoint), keepsFormats(keepsFormats),
        files(std::make_shared<std::vector<std::shared_ptr<llvm::MemoryBuffer>>>(checkpoint.files)) {}

  bool has(llvm::StringRef name) const { return checkpoint.tensors.contains(name); }
  /// Returns the tensor |name|, which must have |shape|.
  mlir::Value matrix(const llvm::Twine &name, llvm::ArrayRef<int64_t> shape);
  mlir::Value vector(const llvm::Twine &name, int64_t size);
  /// Returns null if the checkpoint has no such tensor.
  mlir::Value optionalVector(const llvm::Twine &name, int64_t size);
  std::vector<float> floats(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  /// Returns the rows |indices| of the matrix |name|; only these are dequantised.
  mlir::Value rows(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Value indices);
  /// Returns the size of dim |axis| of a tensor of rank 2, or 0 with an error.
  int64_t dim(const llvm::Twine &name, unsigned axis);

  /// Returns an error that names the tensors that were not read.
  llvm::Error checkAllUsed() const;

private:
  /// A matrix before the reshape: [N, K / group, group], or [N, K] as f32.
  struct Parts {
    mlir::Value values, minima;
  };
  const llvm::MemoryBuffer &fileOf(const gguf::Tensor &tensor) const;
  const gguf::Tensor *find(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  Parts parts(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);

  GraphBuilder &graph;
  const Checkpoint &checkpoint;
  bool keepsFormats;
  std::shared_ptr<const void> files; ///< keeps the bytes of tensors alive
  llvm::StringMap<Parts> known;
  llvm::StringSet<> used;
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_DECODER_WEIGHTREADER_H
