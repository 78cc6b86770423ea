// SPDX-License-Identifier: Apache-2.0
//===- Combine.cpp - Several .bmodel files of one network as one ----------===//
#include "bmodel/combine.h"

#include "CombinedFile.h"
#include "bmodel/properties.h"
#include "bmodel/tensor_layout.h"

#include <algorithm>
#include <deque>

namespace bmodel {
namespace {

std::string shapeText(const TensorDefT &tensor) {
  std::string text;
  for (const Dim &dim : tensor.shape) {
    text += (text.empty() ? "" : "x") + std::string(dim.slot() < 0 ? "" : "<=") + std::to_string(dim.value());
  }
  return text.empty() ? "scalar" : text;
}

/// Returns the shapes of all inputs, with their names if there are several.
std::string shapesText(const StageDefT &stage) {
  std::string text;
  for (uint32_t slot : stage.inputs) {
    const TensorDefT &tensor = *stage.tensors[slot];
    text += (text.empty() ? "" : ",") + (stage.inputs.size() > 1 ? tensor.name + "=" : "") + shapeText(tensor);
  }
  return text;
}

bool haveSameShapes(const StageDefT &a, const StageDefT &b) {
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), [&](uint32_t x, uint32_t y) {
    const std::vector<Dim> &left = a.tensors[x]->shape, &right = b.tensors[y]->shape;
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](const Dim &m, const Dim &n) {
      return m.value() == n.value() && (m.slot() < 0) == (n.slot() < 0);
    });
  });
}

/// "x (f32, 4 dims), y (i64, 2 dims)"
std::string portsText(const StageDefT &stage, const std::vector<uint32_t> &slots) {
  std::string text;
  for (uint32_t slot : slots) {
    const TensorDefT &tensor = *stage.tensors[slot];
    text += (text.empty() ? "" : ", ") + tensor.name + " (" + dtypeName(tensor.dtype) + ", " +
            std::to_string(tensor.shape.size()) + " dims)";
  }
  return text.empty() ? "none" : text;
}

class Combiner {
public:
  explicit Combiner(std::span<const NamedModel> given) {
    for (const NamedModel &each : given) {
      files.emplace_back(each);
    }
  }

  MaybeRejection run(const std::string &path, CombineResult &result);

private:
  MaybeRejection checkNets(const CombinedFile &file) const;
  MaybeRejection checkPorts(const CombinedFile &file, size_t net, const StageDefT &stage, bool ofInputs) const;
  MaybeRejection uniteChips(CombinedFile &file);
  void placeSegments(CombinedFile &file);
  MaybeRejection addStages(CombinedFile &file);
  void keepPromises();
  MaybeRejection addStage(CombinedFile &file, NetDefT &net, std::unique_ptr<StageDefT> stage);
  uint32_t segmentOf(const Target &target) const;
  uint64_t takenBytes() const { return namedConstants.takenBytes + tensorConstants.takenBytes; }
  uint64_t storedBytes() const { return namedConstants.storedBytes + tensorConstants.storedBytes; }

  std::deque<CombinedFile> files;
  std::vector<uint32_t> stageChips; ///< the chips of the stages of the files so far
  std::unique_ptr<ModelDefT> made = std::make_unique<ModelDefT>();
  std::vector<SegmentContents> code, blobs;
  SharedConstants namedConstants, tensorConstants;
  std::unordered_map<std::string_view, Target> knownSegments; ///< segments of code and blobs by their bytes
  std::deque<std::vector<char>> rewritten;
};

/// Checks that the file has the same nets with the same inputs and outputs as the first file.
MaybeRejection Combiner::checkNets(const CombinedFile &file) const {
  auto names = [](const CombinedFile &of) {
    std::string text;
    for (const auto &net : of.model->nets) {
      text += (text.empty() ? "'" : ", '") + net->name + "'";
    }
    return text;
  };
  const CombinedFile &first = files.front();
  if (names(file) != names(first)) {
    return Rejection{Fault::Corrupt, file.name + " holds network " + names(file) + ", " + first.name + " " +
                                         names(first) + ": only files of one network can be combined"};
  }
  for (size_t net = 0; net < file.model->nets.size(); ++net) {
    for (const auto &stage : file.model->nets[net]->stages) {
      RETURN_IF_REJECTED(checkPorts(file, net, *stage, true));
      RETURN_IF_REJECTED(checkPorts(file, net, *stage, false));
    }
  }
  return std::nullopt;
}

MaybeRejection Combiner::checkPorts(const CombinedFile &file, size_t net, const StageDefT &stage, bool ofInputs) const {
  const StageDefT &wanted = *files.front().model->nets[net]->stages.front();
  const auto &ports = ofInputs ? stage.inputs : stage.outputs;
  const auto &wantedPorts = ofInputs ? wanted.inputs : wanted.outputs;
  const std::string text = portsText(stage, ports), wantedText = portsText(wanted, wantedPorts);
  if (text == wantedText) {
    return std::nullopt;
  }
  const char *what = ofInputs ? "inputs" : "outputs";
  return Rejection{Fault::Corrupt, file.name + " has the " + what + " " + text + "; " + files.front().name + " has " +
                                       wantedText + ": stages of one network may differ only in sizes"};
}

MaybeRejection Combiner::uniteChips(CombinedFile &file) {
  for (const auto &chip : file.model->chips) {
    std::optional<uint32_t> known;
    for (uint32_t i = 0; i < made->chips.size(); ++i) {
      const ChipDefT &other = *made->chips[i];
      if (other.name == chip->name && other.fingerprint != chip->fingerprint) {
        return Rejection{Fault::Corrupt, "chip '" + chip->name + "' has the fingerprint " + chip->fingerprint + " in " +
                                             file.name + " and " + other.fingerprint +
                                             " in an earlier file: the name stands for two different chips"};
      }
      const bool isSame = other.name == chip->name && other.description == chip->description &&
                          other.family == chip->family && other.memory == chip->memory;
      known = isSame ? i : known;
    }
    if (!known) {
      known = uint32_t(made->chips.size());
      made->chips.push_back(std::make_unique<ChipDefT>(*chip));
    }
    file.chips.push_back(*known);
  }
  const size_t earlier = stageChips.size();
  for (const auto &net : file.model->nets) {
    for (const auto &stage : net->stages) {
      const uint32_t chip = file.chips[stage->chip];
      file.hasKnownChip |= std::count(stageChips.begin(), stageChips.begin() + ptrdiff_t(earlier), chip) > 0;
      stageChips.push_back(chip);
    }
  }
  return std::nullopt;
}

void Combiner::placeSegments(CombinedFile &file) {
  for (uint32_t i = 0; i < file.targets.size(); ++i) { // constants before code, because code contains their offsets
    if (file.model->segments[i]->kind == SegmentKind::Constants) {
      const bool isNamed = int64_t(i) == file.namedConstants;
      file.constants[i].close();
      (isNamed ? namedConstants : tensorConstants).take(file.constants[i], file.view.segment(i));
      file.targets[i] = {SegmentKind::Constants, isNamed ? 0u : 1u};
    }
  }
  for (uint32_t i = 0; i < file.targets.size(); ++i) {
    const SegmentKind kind = file.model->segments[i]->kind;
    if (kind == SegmentKind::Constants) {
      continue;
    }
    std::span<const char> bytes(reinterpret_cast<const char *>(file.view.segment(i)), file.model->segments[i]->bytes);
    if (file.namesConstants[i]) {
      rewritten.push_back(file.moveCode(i));
      bytes = {rewritten.back().data(), rewritten.back().size()};
    }
    std::vector<SegmentContents> &all = kind == SegmentKind::Code ? code : blobs;
    auto [entry, isNew] = knownSegments.try_emplace({bytes.data(), bytes.size()}, Target{kind, uint32_t(all.size())});
    if (isNew || entry->second.kind != kind) {
      all.emplace_back(kind).append(bytes);
      file.targets[i] = {kind, uint32_t(all.size() - 1)};
    } else {
      file.targets[i] = entry->second;
    }
  }
}

/// Returns the final index of a segment. The order is: code, constants that code refers to (if any), constants of
/// tensors (if any), blobs. Code always refers to the first constants segment.
uint32_t Combiner::segmentOf(const Target &target) const {
  const uint32_t codes = uint32_t(code.size()), named = namedConstants.isUsed;
  switch (target.kind) {
  case SegmentKind::Code:
    return target.index;
  case SegmentKind::Constants:
    return codes + (target.index == 0 ? 0 : named);
  case SegmentKind::Blob:
    break;
  }
  return codes + named + tensorConstants.isUsed + target.index;
}

static bool isPromise(const PropertyDefT &property) {
  return property.key == kBitEqual || property.key == kBitEqualExcept;
}

MaybeRejection Combiner::addStages(CombinedFile &file) {
  for (size_t n = 0; n < file.model->nets.size(); ++n) {
    if (&file == &files.front()) {
      made->nets.push_back(std::make_unique<NetDefT>());
      made->nets.back()->name = file.model->nets[n]->name;
    }
    for (auto &stage : file.model->nets[n]->stages) {
      RETURN_IF_REJECTED(addStage(file, *made->nets[n], std::move(stage)));
    }
  }
  for (const auto &blob : file.model->blobs) {
    made->blobs.push_back(std::make_unique<BlobDefT>(*blob));
    made->blobs.back()->segment = segmentOf(file.targets[blob->segment]);
  }
  for (const auto &property : file.model->properties) {
    if (std::none_of(made->properties.begin(), made->properties.end(), [&](const auto &known) {
          return known->key == property->key && known->value == property->value;
        })) {
      made->properties.push_back(std::make_unique<PropertyDefT>(*property));
    }
  }
  return std::nullopt;
}

/// Drops the bit-equality properties unless every input file has them: the combined file guarantees no more than its
/// weakest part.
void Combiner::keepPromises() {
  auto promises = [](const CombinedFile &file) {
    return std::any_of(file.model->properties.begin(), file.model->properties.end(),
                       [](const auto &property) { return isPromise(*property); });
  };
  if (!std::all_of(files.begin(), files.end(), promises)) {
    std::erase_if(made->properties, [](const auto &property) { return isPromise(*property); });
  }
}

MaybeRejection Combiner::addStage(CombinedFile &file, NetDefT &net, std::unique_ptr<StageDefT> stage) {
  stage->chip = file.chips[stage->chip];
  stage->name = shapesText(*stage);
  for (const auto &known : net.stages) {
    const ChipDefT &a = *made->chips[known->chip], &b = *made->chips[stage->chip];
    if (a.name == b.name && haveSameShapes(*known, *stage)) {
      return Rejection{Fault::Corrupt, file.name + " has a stage for " + b.name + " and inputs of " + stage->name +
                                           ", like an earlier file: one of them could never run"};
    }
  }
  for (auto &workspace : stage->workspaces) {
    workspace->chip = workspace->memory == MemoryKind::Device ? file.chips[workspace->chip] : 0;
  }
  for (auto &tensor : stage->tensors) {
    tensor->chip = tensor->chip >= 0 ? int32_t(file.chips[size_t(tensor->chip)]) : kHostMemory;
    if (tensor->place == Place::Segment) {
      const ConstantPieces &pieces = file.constants[tensor->place_index];
      tensor->place_index = segmentOf(file.targets[tensor->place_index]);
      if (tensor->view_of < 0) {
        tensor->offset = tensor->bytes ? pieces.relocate(tensor->offset) : 0;
      }
    }
  }
  for (auto &subnet : stage->subnets) {
    subnet->chip = file.chips[subnet->chip];
    if (subnet->code_segment >= 0) {
      subnet->code_segment = int32_t(segmentOf(file.targets[size_t(subnet->code_segment)]));
    }
  }
  net.stages.push_back(std::move(stage));
  return std::nullopt;
}

MaybeRejection Combiner::run(const std::string &path, CombineResult &result) {
  for (CombinedFile &file : files) {
    RETURN_IF_REJECTED(checkNets(file));
    RETURN_IF_REJECTED(uniteChips(file));
  }
  for (CombinedFile &file : files) {
    RETURN_IF_REJECTED(file.readCode());
    file.readTensors();
    const uint64_t taken = takenBytes(), stored = storedBytes();
    placeSegments(file);
    result.files.push_back({takenBytes() - taken, storedBytes() - stored, file.hasKnownChip});
  }
  made->name = files.front().model->name, made->producer = files.front().model->producer;
  for (CombinedFile &file : files) {
    RETURN_IF_REJECTED(addStages(file));
  }
  keepPromises();
  std::vector<SegmentContents> segments = std::move(code);
  code.resize(segments.size(), SegmentContents(SegmentKind::Code));
  for (SharedConstants *constants : {&namedConstants, &tensorConstants}) {
    if (constants->isUsed) {
      segments.push_back(std::move(constants->segment));
    }
  }
  segments.insert(segments.end(), blobs.begin(), blobs.end());
  if (std::string message = writeModel(*made, segments, path); !message.empty()) {
    return Rejection{Fault::Io, message};
  }
  return std::nullopt;
}

} // namespace

CombineResult combineModels(std::span<const NamedModel> files, const std::string &path) {
  CombineResult result;
  if (files.size() < 2) {
    result.fault = Fault::Corrupt, result.message = "at least two files are required";
    return result;
  }
  if (MaybeRejection rejection = Combiner(files).run(path, result)) {
    result.fault = rejection->fault, result.message = rejection->message;
  }
  return result;
}

} // namespace bmodel
