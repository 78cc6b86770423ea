//===- OnnxModel.h - A parsed ONNX file with checked structure ------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXMODEL_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXMODEL_H

#include "top_dialect/Import/Onnx/Model/OnnxProto.h"
#include "top_dialect/Import/Onnx/Sizes/RunTimeSizes.h"
#include "top_dialect/Import/Onnx/Sizes/SizeAssumptions.h"

#include "mlir/IR/Types.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::top::onnx_import {

/// Newest supported opset of ai.onnx. A newer one might change the meaning of a known operator.
inline constexpr int64_t kNewestOpset = 28;
/// Operators of older opsets are converted to their form in this opset (OnnxLegacy.cpp).
inline constexpr int64_t kFirstModernOpset = 7;

/// Limit on ImportState::splitGraphs, each of which may double the number of ops.
inline constexpr int64_t kMaxSplitGraphs = 16;

/// Counts and warnings for a whole file, including its functions.
struct ImportState {
  int64_t nodes = 0;                   ///< nodes imported so far; nodes of a function count once per call
  int64_t loopBodies = 0;              ///< loop bodies imported so far
  int64_t splitGraphs = 0;             ///< graphs whose nodes after an If were imported once per branch
  int64_t readBytes = 0;               ///< size of the file's constants used so far
  int64_t foldedBytes = 0;             ///< size of the constants computed so far
  std::optional<int64_t> channelBlock; ///< block size of the layout of com.microsoft.nchwc, once it is known
  RunTimeSizes runTimeSizes;           ///< sizes that a run computes
  ReplacedSymbols replacedSymbols;     ///< symbols of inputs that turned out to be other sizes
  OpenRegions regions;                 ///< the branches and bodies around the node that is imported
  std::function<void(llvm::StringRef)> warn;
  /// Adds an input after those of the file, and returns its value.
  std::function<llvm::Expected<mlir::Value>(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Type element)>
      addInput;
  llvm::StringSet<> warned; ///< messages that have been given

  /// Passes |message| to `warn`, unless the same message was given before.
  void warnOnce(const llvm::Twine &message) {
    std::string text = message.str();
    if (warn && warned.insert(text).second) {
      warn(text);
    }
  }
};

/// Maps domain, name and overload to the model-local functions of a file.
using FunctionTable = llvm::StringMap<const onnx::FunctionProto *>;

/// A parsed file and what the importer needs to know about it as a whole. For a function call (see instantiate), the
/// body of the function takes the place of the file's graph.
struct OnnxModel {
  std::shared_ptr<onnx::ModelProto> proto;
  std::string path;
  std::string folder;              ///< folder that may contain external data
  std::array<uint64_t, 2> hash{};  ///< of the file's bytes
  llvm::StringMap<int64_t> opsets; ///< by domain; "" is ai.onnx
  int64_t maxFoldBytes = 0;        ///< ImportOptions::maxFoldBytes
  int64_t tensorLimit = INT64_MAX; ///< ImportOptions::tensorLimit()
  int64_t foldLimit = 0;           ///< ImportOptions::memoryLimit
  bool keepsFormats = true;        ///< ImportOptions::keepsFormats
  std::shared_ptr<const FunctionTable> functions = std::make_shared<FunctionTable>();
  std::shared_ptr<ImportState> state = std::make_shared<ImportState>();
  unsigned callDepth = 0; ///< number of function calls around this body

  int64_t opsetOf(llvm::StringRef domain) const {
    auto it = opsets.find(domain);
    return it == opsets.end() ? 1 : it->second;
  }
};

/// Reads and parses |path|. If it is not an ONNX model, the error says what kind of file it is.
llvm::Expected<OnnxModel> loadOnnxModel(llvm::StringRef path);

/// Parses the bytes of the file |path|.
llvm::Expected<OnnxModel> parseOnnxModel(llvm::StringRef bytes, llvm::StringRef path);

/// Returns for example "node 'conv1' (Conv)". For a node without a name, uses that of its first output.
std::string describeNode(const onnx::NodeProto &node);

/// Returns the name of a node, or of its first output if the node has none.
std::string nodeName(const onnx::NodeProto &node);

/// Returns "" for both spellings of the default domain, "" and "ai.onnx".
llvm::StringRef normalizeDomain(llvm::StringRef domain);

/// Returns whether |name| is the result of a node of |graph| that draws random numbers. The importer makes such results
/// inputs of the network (OnnxRandom.cpp).
bool isRandomResult(const onnx::GraphProto &graph, llvm::StringRef name);

/// Returns the nodes of |graph| in an order in which every value is produced before it is used. |outer| returns whether
/// a name is visible in an enclosing graph. Fails on cycles, on values that no node produces and on values produced
/// twice; the message names the nodes and tensors.
llvm::Expected<std::vector<const onnx::NodeProto *>> sortNodes(const onnx::GraphProto &graph,
                                                               llvm::function_ref<bool(llvm::StringRef)> outer);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXMODEL_H
