//===- HuggingFaceCheckpoint.cpp - A Hugging Face folder as a language model ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/HuggingFace/HuggingFaceCheckpoint.h"

#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Safetensors.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/HuggingFace/HuggingFaceConfig.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <set>

using llvm::StringRef;
using llvm::json::Object;

namespace tessera::top {
namespace {

struct Names {
  llvm::StringLiteral theirs, ours;
};

constexpr Names kNames[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"post_attention_layernorm", "ffn_norm"},
};
constexpr Names kGemma3Names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};
constexpr Names kGpt2Names[] = {
    {"wte", "token_embd"},          {"wpe", "position_embd"}, {"ln_f", "output_norm"},
    {"ln_1", "attn_norm"},          {"ln_2", "ffn_norm"},     {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"}, {"mlp.c_fc", "ffn_up"},   {"mlp.c_proj", "ffn_down"},
};

/// Returns GGUF's name of a tensor, or its own if it is unknown: then it stays unused, which is an error later.
std::string renamed(StringRef name, StringRef architecture) {
  auto [stem, kind] = name.rsplit('.');
  if (stem == "lm_head") {
    return ("output." + kind).str();
  }
  std::string block;
  const bool isGpt2 = architecture == "gpt2";
  stem.consume_front(isGpt2 ? "transformer." : "model.");
  if (stem.consume_front(isGpt2 ? "h." : "layers.")) {
    auto [layer, part] = stem.split('.');
    block = ("blk." + layer + ".").str(), stem = part;
  }
  auto search = [&](llvm::ArrayRef<Names> names) {
    const auto *found = llvm::find_if(names, [&](const Names &each) { return each.theirs == stem; });
    return found == names.end() ? std::string() : (block + found->ours + "." + kind).str();
  };
  std::string found = isGpt2 ? search(kGpt2Names) : architecture == "gemma3" ? search(kGemma3Names) : "";
  found = found.empty() && !isGpt2 ? search(kNames) : found;
  return found.empty() ? name.str() : found;
}

/// Returns true for constants that old checkpoints store although they follow from the hyperparameters.
bool isDerived(StringRef name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

const gguf::TensorFormat *formatOf(mlir::Type type) {
  return type.isF32()    ? gguf::findFormat(gguf::kF32)
         : type.isF16()  ? gguf::findFormat(gguf::kF16)
         : type.isBF16() ? gguf::findFormat(gguf::kBF16)
                         : nullptr;
}

/// Returns the JSON object in a file of |folder|; an empty one if the file does not exist.
llvm::Expected<Object> readOptionalJson(StringRef folder, StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  if (!llvm::sys::fs::exists(path)) {
    return Object();
  }
  auto file = readRegularFile(path);
  auto value = file ? parseJson((*file)->getBuffer()) : file.takeError();
  if (!value) {
    return prefixed(value.takeError(), "cannot read '" + name + "': ");
  }
  Object *object = value->getAsObject();
  return object && !object->empty() ? llvm::Expected<Object>(std::move(*object))
                                    : llvm::createStringError(name + " is not a JSON object with entries");
}

class FolderReader {
public:
  FolderReader(StringRef folder, mlir::MLIRContext *context) : folder(folder), context(context) {}

  llvm::Expected<Checkpoint> read();

private:
  llvm::Expected<std::set<std::string>> listFiles();
  llvm::Error readFile(StringRef name);
  llvm::Error addTensor(const SafetensorsTensor &tensor);

  StringRef folder;
  mlir::MLIRContext *context;
  Checkpoint checkpoint;
  std::set<std::string> promised; ///< tensors that the index lists
  bool isTied = false;
};

llvm::Expected<std::set<std::string>> FolderReader::listFiles() {
  auto index = readOptionalJson(folder, "model.safetensors.index.json");
  if (!index) {
    return index.takeError();
  }
  const Object *map = index->getObject("weight_map");
  if (!map) {
    return std::set<std::string>{"model.safetensors"};
  }
  std::set<std::string> files;
  for (const auto &[name, value] : *map) {
    StringRef file = value.getAsString().value_or("");
    if (file.empty() || file.starts_with(".") || llvm::sys::path::filename(file) != file) {
      return llvm::createStringError("model.safetensors.index.json names the file '" + file +
                                     "', which is not in the folder itself");
    }
    files.insert(file.str());
    promised.insert(name.str());
  }
  return files;
}

llvm::Error FolderReader::addTensor(const SafetensorsTensor &given) {
  promised.erase(given.name);
  std::string name = renamed(given.name, checkpoint.architecture);
  if (isDerived(given.name) || (isTied && name == "output.weight")) {
    return llvm::Error::success();
  }
  gguf::Tensor tensor{formatOf(given.elementType), given.shape, given.bytes};
  if (!tensor.format) {
    return unsupported(llvm::formatv("the tensor '{0}' has the type {1}; supported are F32, F16 and BF16", given.name,
                                     safetensorsName(given.elementType)));
  }
  const bool isMatrix = tensor.shape.size() == 2;
  if (checkpoint.architecture == "gpt2" && isMatrix && StringRef(name).starts_with("blk.")) {
    tensor.isTransposed = true;
    std::swap(tensor.shape[0], tensor.shape[1]);
  }
  tensor.addend = checkpoint.architecture == "gemma3" && StringRef(name).ends_with("norm.weight") ? 1 : 0;
  if (!checkpoint.tensors.try_emplace(name, tensor).second) {
    return llvm::createStringError("the folder has two tensors '" + given.name + "'");
  }
  return llvm::Error::success();
}

llvm::Error FolderReader::readFile(StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  auto file = readRegularFile(path);
  if (!file) {
    const bool isOther = llvm::sys::fs::exists(folder + "/pytorch_model.bin");
    return prefixed(file.takeError(), "cannot read '" + name + "'" +
                                          (isOther ? " (pytorch_model.bin is not supported; save the model with "
                                                     "safe_serialization=True)"
                                                   : "") +
                                          ": ");
  }
  auto tensors = parseSafetensors(context, (*file)->getBuffer());
  if (!tensors) {
    return prefixed(tensors.takeError(), "'" + name + "': ");
  }
  checkpoint.files.push_back(std::move(*file));
  for (const SafetensorsTensor &tensor : *tensors) {
    if (llvm::Error error = addTensor(tensor)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<Checkpoint> FolderReader::read() {
  auto config = readOptionalJson(folder, "config.json");
  if (!config) {
    return config.takeError();
  }
  if (config->empty()) {
    return llvm::createStringError("the folder has no config.json");
  }
  if (llvm::Error error = readHuggingFaceConfig(*config, checkpoint)) {
    return prefixed(std::move(error), "config.json: ");
  }
  isTied = hasTiedEmbeddings(*config, checkpoint.architecture);
  auto files = listFiles();
  if (!files) {
    return files.takeError();
  }
  for (StringRef file : *files) {
    if (llvm::Error error = readFile(file)) {
      return std::move(error);
    }
  }
  if (!promised.empty() || (!isTied && !checkpoint.tensors.contains("output.weight"))) {
    return llvm::createStringError("the tensor '" + (promised.empty() ? "lm_head.weight" : *promised.begin()) +
                                   "' is missing");
  }
  return std::move(checkpoint);
}

} // namespace

llvm::Expected<Checkpoint> openHuggingFace(StringRef folder, mlir::MLIRContext *context) {
  auto checkpoint = FolderReader(folder, context).read();
  return checkpoint ? std::move(checkpoint)
                    : llvm::Expected<Checkpoint>(prefixed(checkpoint.takeError(), "'" + folder + "': "));
}

} // namespace tessera::top
