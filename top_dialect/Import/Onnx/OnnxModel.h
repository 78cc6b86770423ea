//===- OnnxModel.h - A parsed ONNX file whose structure has been checked ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxProto.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::top::onnx_import {

/// Newest opset of ai.onnx that is read: a newer one may give an operator we know another meaning.
inline constexpr int64_t kNewestOpset = 28;
/// Operators of older opsets are upgraded to this one's (OnnxLegacy.cpp).
inline constexpr int64_t kFirstModernOpset = 7;

/// What is counted, and said once, for a whole file, its functions included.
struct ImportState {
  int64_t nodes = 0;       ///< imported so far, those of a function once per call
  int64_t loopBodies = 0;  ///< imported so far
  int64_t readBytes = 0;   ///< of the file's constants that have been used
  int64_t foldedBytes = 0; ///< of constants that were computed
  std::function<void(llvm::StringRef)> warn;
  llvm::StringSet<> warned; ///< what has been said already

  /// Tells the user |message|, unless he was told the same before.
  void warnOnce(const llvm::Twine &message) {
    std::string text = message.str();
    if (warn && warned.insert(text).second) {
      warn(text);
    }
  }
};

/// The model-local functions of a file by domain, name and overload.
using FunctionTable = llvm::StringMap<const onnx::FunctionProto *>;

/// The parsed file with what the importer needs to know of it as a whole; or the body of one of its functions, where a
/// node calls it (instantiate), in the place of the file's graph.
struct OnnxModel {
  std::shared_ptr<onnx::ModelProto> proto;
  std::string path;
  std::string folder;              ///< where external data may lie
  std::array<uint64_t, 2> hash{};  ///< of the file's bytes
  llvm::StringMap<int64_t> opsets; ///< by domain; "" is ai.onnx
  int64_t maxFoldBytes = 0;        ///< ImportOptions::maxFoldBytes
  int64_t tensorLimit = INT64_MAX; ///< ImportOptions::tensorLimit()
  int64_t foldLimit = 0;           ///< ImportOptions::memoryLimit
  std::shared_ptr<const FunctionTable> functions = std::make_shared<FunctionTable>();
  std::shared_ptr<ImportState> state = std::make_shared<ImportState>();
  unsigned callDepth = 0; ///< how many functions lie around this body

  int64_t opsetOf(llvm::StringRef domain) const {
    auto it = opsets.find(domain);
    return it == opsets.end() ? 1 : it->second;
  }
};

/// Reads and parses |path|. Says of anything that is no ONNX model what it is instead.
llvm::Expected<OnnxModel> loadOnnxModel(llvm::StringRef path);

/// The same for the bytes of the file |path|.
llvm::Expected<OnnxModel> parseOnnxModel(llvm::StringRef bytes, llvm::StringRef path);

/// "node 'conv1' (Conv)"; unnamed nodes are called by their first output.
std::string describeNode(const onnx::NodeProto &node);

/// Name of a node: its own, else that of its first output.
std::string nodeName(const onnx::NodeProto &node);

/// ai.onnx is written as "" in newer files and by name in others.
llvm::StringRef normalizeDomain(llvm::StringRef domain);

/// Nodes of |graph| in an order in which every value is made before it is used. |outer| tells
/// whether a name is visible from an enclosing graph. Fails on cycles, values nobody makes and
/// values made twice; the message names nodes and tensors.
llvm::Expected<std::vector<const onnx::NodeProto *>> sortNodes(const onnx::GraphProto &graph,
                                                               llvm::function_ref<bool(llvm::StringRef)> outer);

} // namespace tessera::top::onnx_import
