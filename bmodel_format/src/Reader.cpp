// SPDX-License-Identifier: Apache-2.0
//===- Reader.cpp - Integrity of the bytes of a .bmodel -------------------===//
#include "bmodel/reader.h"

#include "bmodel/hash.h"
#include "bmodel/sha256.h"

#include <cinttypes>
#include <cstring>

using namespace bmodel;

namespace {

bool checkHeader(const unsigned char *data, uint64_t bytes, FileHeader &header, Status &status) {
  if (bytes < sizeof(FileHeader)) {
    return BMODEL_FAIL(status, Corrupt,
                       "not a bmodel file, or truncated: %" PRIu64 " bytes, the header alone takes %zu", bytes,
                       sizeof(FileHeader));
  }
  memcpy(&header, data, sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return BMODEL_FAIL(status, Corrupt,
                       "not a bmodel file: it starts with bytes %02x %02x %02x %02x, not with the "
                       "signature 89 42 4d 44",
                       data[0], data[1], data[2], data[3]);
  }
  if (header.formatVersion != kFormatVersion) {
    return BMODEL_FAIL(status, Unsupported,
                       "file has format version %" PRIu32 ", this program reads version %" PRIu32
                       "; compile the model again or use a matching runtime",
                       header.formatVersion, kFormatVersion);
  }
  if (header.fileBytes != bytes) {
    return BMODEL_FAIL(status, Corrupt,
                       "file is %" PRIu64 " bytes long, its header says %" PRIu64 ": it was truncated or altered",
                       bytes, header.fileBytes);
  }
  if (header.headerBytes != sizeof(FileHeader) || header.tableOffset != sizeof(FileHeader) ||
      header.tableBytes > bytes - sizeof(FileHeader)) {
    return BMODEL_FAIL(status, Corrupt, "header was altered: table at %" PRIu64 " of %" PRIu64 " bytes",
                       header.tableOffset, header.tableBytes);
  }
  return true;
}

bool checkTableHash(const unsigned char *data, FileHeader header, Status &status) {
  const uint64_t expected = header.hash;
  header.hash = 0;
  const uint64_t seed = hashBytes(&header, sizeof(header));
  const uint64_t actual = hashBytes(data + header.tableOffset, header.tableBytes, seed);
  if (actual != expected) {
    return BMODEL_FAIL(status, Corrupt,
                       "file was altered: the hash of header and tables (bytes 0 to %" PRIu64 ") is %016" PRIx64
                       ", should be %016" PRIx64,
                       header.tableOffset + header.tableBytes, actual, expected);
  }
  return true;
}

bool checkZeros(const unsigned char *data, uint64_t begin, uint64_t end, Status &status) {
  for (uint64_t i = begin; i < end; ++i) {
    if (data[i] != 0) {
      return BMODEL_FAIL(status, Corrupt, "file was altered: padding byte %" PRIu64 " is %u, should be 0", i,
                         unsigned(data[i]));
    }
  }
  return true;
}

/// Checks that all bytes between flatbuffer and segments are zero. validateModel has checked that segments are in
/// order.
bool checkPadding(const ModelView &view, Status &status) {
  uint64_t at = view.header->tableOffset + view.header->tableBytes;
  if (const auto *segments = view.model->segments()) {
    for (const SegmentDef *segment : *segments) {
      if (!checkZeros(view.data, at, segment->offset(), status)) {
        return false;
      }
      at = segment->offset() + segment->bytes();
    }
  }
  return checkZeros(view.data, at, view.bytes, status);
}

/// Returns the name of the first tensor with bytes in [begin, end) of |segment|, for the message.
const char *tensorInRange(const ModelView &view, uint32_t segment, uint64_t begin, uint64_t end) {
  if (view.model->nets() == nullptr) {
    return nullptr;
  }
  for (const NetDef *net : *view.model->nets()) {
    for (uint32_t s = 0; net->stages() && s < net->stages()->size(); ++s) {
      const auto *tensors = net->stages()->Get(s)->tensors();
      for (uint32_t t = 0; tensors && t < tensors->size(); ++t) {
        const TensorDef *tensor = tensors->Get(t);
        if (tensor->place() == Place::Segment && tensor->place_index() == segment && tensor->view_of() < 0 &&
            tensor->offset() < end && tensor->offset() + tensor->bytes() > begin) {
          return tensor->name()->c_str();
        }
      }
    }
  }
  return nullptr;
}

} // namespace

bool bmodel::openModel(const void *data, uint64_t bytes, ModelView &view, Status &status) {
  const unsigned char *base = static_cast<const unsigned char *>(data);
  FileHeader header;
  if (!checkHeader(base, bytes, header, status) || !checkTableHash(base, header, status)) {
    return false;
  }
  const unsigned char *table = base + header.tableOffset;
  // Every table takes at least 8 bytes. The limit on tables rejects files that share tables to expand beyond their
  // size; the writer never produces them. flatbuffers cannot address more than 2 GiB.
  if (header.tableBytes >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return BMODEL_FAIL(status, Corrupt, "table of %" PRIu64 " bytes exceeds 2 GiB", header.tableBytes);
  }
  flatbuffers::Verifier verifier(table, size_t(header.tableBytes), /*max_depth=*/64,
                                 flatbuffers::uoffset_t(header.tableBytes / 8 + 8));
  if (!VerifyModelDefBuffer(verifier)) {
    return BMODEL_FAIL(status, Corrupt, "the tables of the file are not well-formed");
  }
  view.data = base;
  view.bytes = bytes;
  view.header = reinterpret_cast<const FileHeader *>(base);
  view.model = GetModelDef(table);
  return validateModel(*view.model, header.tableOffset + header.tableBytes, bytes, status) &&
         checkPadding(view, status);
}

uint64_t bmodel::chunkCount(const SegmentDef &segment) {
  return segment.chunk_xxh3() ? segment.chunk_xxh3()->size() : 0;
}

bool bmodel::checkChunk(const ModelView &view, uint32_t segment, uint64_t chunk, Status &status) {
  const SegmentDef &def = *view.model->segments()->Get(segment);
  const uint64_t begin = chunk * def.chunk_bytes();
  const uint64_t left = def.bytes() - begin;
  const uint64_t size = left < def.chunk_bytes() ? left : def.chunk_bytes();
  const uint64_t actual = hashBytes(view.segment(segment) + begin, size);
  const uint64_t expected = def.chunk_xxh3()->Get(flatbuffers::uoffset_t(chunk));
  if (actual == expected) {
    return true;
  }
  const char *tensor = tensorInRange(view, segment, begin, begin + size);
  return BMODEL_FAIL(status, Corrupt,
                     "file was altered: %s segment %" PRIu32 ", bytes %" PRIu64 " to %" PRIu64
                     " of the file%s%.100s%s: hash is %016" PRIx64 ", should be %016" PRIx64,
                     EnumNameSegmentKind(def.kind()), segment, def.offset() + begin, def.offset() + begin + size,
                     tensor ? " (tensor '" : "", tensor ? tensor : "", tensor ? "' and what follows it)" : "", actual,
                     expected);
}

bool bmodel::checkSegments(const ModelView &view, uint32_t kindMask, Status &status) {
  const auto *segments = view.model->segments();
  for (uint32_t i = 0; segments && i < segments->size(); ++i) {
    const SegmentDef *segment = segments->Get(i);
    if (!(kindMask >> uint32_t(segment->kind()) & 1)) {
      continue;
    }
    for (uint64_t chunk = 0; chunk < chunkCount(*segment); ++chunk) {
      if (!checkChunk(view, i, chunk, status)) {
        return false;
      }
    }
  }
  return true;
}

bool bmodel::checkDigests(const ModelView &view, Status &status) {
  const auto *segments = view.model->segments();
  for (uint32_t i = 0; segments && i < segments->size(); ++i) {
    const SegmentDef *segment = segments->Get(i);
    Sha256 sha;
    sha.update(view.segment(i), segment->bytes());
    const auto digest = sha.finish();
    if (memcmp(digest.data(), segment->sha256()->data(), digest.size()) != 0) {
      return BMODEL_FAIL(status, Corrupt, "%s segment %" PRIu32 " does not match its SHA-256",
                         EnumNameSegmentKind(segment->kind()), i);
    }
  }
  return true;
}
