// SPDX-License-Identifier: Apache-2.0
//===- Writer.cpp - Layout, hashes and bytes of a .bmodel -----------------===//
#include "bmodel/writer.h"

#include "AtomicFile.h"
#include "bmodel/hash.h"
#include "bmodel/reader.h"
#include "bmodel/schema_hash.h"
#include "bmodel/sha256.h"
#include "bmodel/tensor_layout.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

using namespace bmodel;

namespace {

/// Large enough to amortise the overhead per call, small enough to spread 100 MB over threads and to localise a
/// corruption.
constexpr uint64_t kChunkBytes = 2 << 20;

const char kZeros[kSegmentAlignment] = {};

uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

/// Calls |sink| with the bytes of |segment| in order, with zeros for gaps. Stops if |sink| returns false.
template <typename Sink>
bool forEachSpan(const SegmentContents &segment, Sink sink) {
  uint64_t at = 0;
  for (const SegmentContents::Piece &piece : segment.getPieces()) {
    while (at < piece.offset) {
      const uint64_t gap = std::min<uint64_t>(piece.offset - at, sizeof(kZeros));
      if (!sink(std::span<const char>(kZeros, gap))) {
        return false;
      }
      at += gap;
    }
    if (!piece.bytes.empty() && !sink(piece.bytes)) {
      return false;
    }
    at += piece.bytes.size();
  }
  return true;
}

/// Computes the chunk hashes and the digest of one segment in one pass over its bytes.
void hashSegment(const SegmentContents &segment, SegmentDefT &def) {
  alignas(64) XXH3_state_t state;
  XXH3_64bits_reset(&state);
  Sha256 digest;
  uint64_t inChunk = 0;
  forEachSpan(segment, [&](std::span<const char> bytes) {
    while (!bytes.empty()) {
      const size_t take = std::min<size_t>(bytes.size(), kChunkBytes - inChunk);
      XXH3_64bits_update(&state, bytes.data(), take);
      digest.update(bytes.data(), take);
      inChunk += take;
      bytes = bytes.subspan(take);
      if (inChunk == kChunkBytes) {
        def.chunk_xxh3.push_back(XXH3_64bits_digest(&state));
        XXH3_64bits_reset(&state);
        inChunk = 0;
      }
    }
    return true;
  });
  if (inChunk > 0) {
    def.chunk_xxh3.push_back(XXH3_64bits_digest(&state));
  }
  const auto sha = digest.finish();
  def.sha256.assign(sha.begin(), sha.end());
}

void pack(const ModelDefT &model, flatbuffers::FlatBufferBuilder &builder) {
  builder.Clear();
  FinishModelDefBuffer(builder, ModelDef::Pack(builder, &model));
}

FileHeader makeHeader(const flatbuffers::FlatBufferBuilder &builder, uint64_t fileBytes) {
  FileHeader header = {};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.formatVersion = kFormatVersion;
  header.headerBytes = sizeof(FileHeader);
  header.fileBytes = fileBytes;
  header.tableOffset = sizeof(FileHeader);
  header.tableBytes = builder.GetSize();
  const uint64_t seed = hashBytes(&header, sizeof(header));
  header.hash = hashBytes(builder.GetBufferPointer(), builder.GetSize(), seed);
  return header;
}

/// Assigns every segment its offset after a flatbuffer of |tableBytes|; returns the size of the file.
uint64_t placeSegments(ModelDefT &model, uint64_t tableBytes) {
  uint64_t at = alignUp(sizeof(FileHeader) + tableBytes, kSegmentAlignment);
  for (auto &segment : model.segments) {
    segment->offset = at;
    at = alignUp(at + segment->bytes, kSegmentAlignment);
  }
  return at;
}

bool writeBytes(AtomicFile &file, const FileHeader &header, const flatbuffers::FlatBufferBuilder &builder,
                const ModelDefT &model, std::span<const SegmentContents> segments) {
  auto padTo = [&](uint64_t offset) {
    while (file.getOffset() < offset) {
      const uint64_t gap = std::min<uint64_t>(offset - file.getOffset(), sizeof(kZeros));
      if (!file.append({kZeros, gap})) {
        return false;
      }
    }
    return true;
  };
  if (!file.append({reinterpret_cast<const char *>(&header), sizeof(header)}) ||
      !file.append({reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()})) {
    return false;
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!padTo(model.segments[i]->offset) ||
        !forEachSpan(segments[i], [&](std::span<const char> b) { return file.append(b); })) {
      return false;
    }
  }
  return padTo(header.fileBytes);
}

} // namespace

uint64_t SegmentContents::append(std::span<const char> bytes, uint64_t alignment) {
  const uint64_t offset = alignUp(end, alignment);
  pieces.push_back({offset, bytes});
  end = offset + bytes.size();
  return offset;
}

std::string bmodel::writeModel(ModelDefT &model, std::span<const SegmentContents> segments, const std::string &path) {
  model.schema_hash = kSchemaHash;
  model.segments.clear();
  for (const SegmentContents &segment : segments) {
    auto def = std::make_unique<SegmentDefT>();
    def->kind = segment.getKind();
    def->bytes = segment.getBytes();
    def->offset = kSegmentAlignment; // any value but the default, which the builder would not store
    def->chunk_bytes = kChunkBytes;
    hashSegment(segment, *def);
    model.segments.push_back(std::move(def));
  }

  // Pack twice: first to learn the size of the flatbuffer, then with the offsets that follow from it.
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  pack(model, builder);
  const uint64_t fileBytes = placeSegments(model, builder.GetSize());
  pack(model, builder);

  const FileHeader header = makeHeader(builder, fileBytes);
  Status status;
  if (!validateModel(*GetModelDef(builder.GetBufferPointer()), header.tableOffset + header.tableBytes, fileBytes,
                     status)) {
    return "failed to write '" + path + "': " + status.message;
  }
  AtomicFile file(path);
  if (!file.isOpen() || !writeBytes(file, header, builder, model, segments) || !file.commit()) {
    return file.getError() + " (it has " + std::to_string(fileBytes) + " bytes)";
  }
  return "";
}

uint32_t bmodel::addKernel(SubnetDefT &subnet, std::string_view symbol, uint32_t argCount) {
  for (size_t i = 0; i < subnet.kernels.size(); ++i) {
    if (subnet.kernels[i]->symbol == symbol && subnet.kernels[i]->arg_count == argCount && !subnet.kernels[i]->custom) {
      return uint32_t(i);
    }
  }
  auto kernel = std::make_unique<KernelDefT>();
  kernel->symbol = symbol;
  kernel->arg_count = argCount;
  subnet.kernels.push_back(std::move(kernel));
  return uint32_t(subnet.kernels.size() - 1);
}

uint32_t bmodel::addTensor(StageDefT &stage, std::string_view name, DType dtype, std::span<const int64_t> shape) {
  std::vector<Dim> dims;
  for (int64_t size : shape) {
    dims.push_back(constantDim(size));
  }
  return addTensor(stage, name, dtype, dims);
}

uint32_t bmodel::addTensor(StageDefT &stage, std::string_view name, DType dtype, std::span<const Dim> shape) {
  auto tensor = std::make_unique<TensorDefT>();
  tensor->name = name;
  tensor->dtype = dtype;
  tensor->shape.assign(shape.begin(), shape.end());
  std::vector<int64_t> largest;
  for (const Dim &dim : shape) {
    largest.push_back(dim.value());
  }
  // The size stays 0 if it does not fit; validateModel then reports the tensor.
  storedBytes(dtype, largest.data(), uint32_t(largest.size()), LayoutKind::RowMajor, 0, 0, tensor->bytes);
  stage.tensors.push_back(std::move(tensor));
  return uint32_t(stage.tensors.size() - 1);
}

StepDefT &bmodel::addCustomCall(SubnetDefT &subnet, CustomOpDefT op, std::vector<uint32_t> args,
                                std::vector<uint32_t> writes) {
  auto kernel = std::make_unique<KernelDefT>();
  kernel->symbol = op.domain + "::" + op.name;
  kernel->arg_count = uint32_t(args.size());
  kernel->custom = std::make_unique<CustomOpDefT>(std::move(op));
  subnet.kernels.push_back(std::move(kernel));
  return addLaunch(subnet, uint32_t(subnet.kernels.size() - 1), std::move(args), 1, std::move(writes));
}

StepDefT &bmodel::addLaunch(SubnetDefT &subnet, uint32_t kernel, std::vector<uint32_t> args, int64_t tileCount,
                            std::vector<uint32_t> writes) {
  LaunchDefT launch;
  launch.kernel = kernel;
  launch.args = std::move(args);
  launch.tile_count = tileCount;
  auto step = std::make_unique<StepDefT>();
  step->op.Set(std::move(launch));
  step->writes = std::move(writes);
  subnet.plan.push_back(std::move(step));
  return *subnet.plan.back();
}

StepDefT &bmodel::addLaunch(SubnetDefT &subnet, uint32_t kernel, std::vector<uint32_t> args, std::vector<uint32_t> dims,
                            Dim tileCount, std::vector<uint32_t> writes) {
  const bool isConstant = tileCount.slot() < 0;
  StepDefT &step = addLaunch(subnet, kernel, std::move(args), isConstant ? tileCount.value() : 0, std::move(writes));
  step.op.AsLaunchDef()->dims = std::move(dims);
  step.op.AsLaunchDef()->tile_count_slot = isConstant ? -1 : tileCount.slot();
  return step;
}

uint32_t bmodel::addDim(StageDefT &stage, std::string_view name, DimRange range, int64_t divisor, int64_t likely) {
  auto dim = std::make_unique<DimSlotDefT>();
  dim->name = name;
  dim->min = range.min, dim->max = range.max, dim->divisor = divisor, dim->likely = likely;
  stage.dims.push_back(std::move(dim));
  return uint32_t(stage.dims.size() - 1);
}

uint32_t bmodel::addDerivedDim(StageDefT &stage, std::string_view name, std::vector<DimTerm> terms, DimRange range,
                               int64_t likely) {
  auto isSame = [](const DimTerm &a, const DimTerm &b) { return a.op() == b.op() && a.value() == b.value(); };
  for (size_t i = 0; i < stage.dims.size(); ++i) {
    const std::vector<DimTerm> &present = stage.dims[i]->terms;
    if (!present.empty() && std::equal(present.begin(), present.end(), terms.begin(), terms.end(), isSame)) {
      return uint32_t(i);
    }
  }
  const uint32_t slot = addDim(stage, name, range, 1, likely);
  stage.dims[slot]->terms = std::move(terms);
  return slot;
}

Dim bmodel::slotDim(const StageDefT &stage, uint32_t slot) { return Dim(stage.dims[slot]->max, int32_t(slot)); }
