// SPDX-License-Identifier: Apache-2.0
//===- file_header.h - The first 64 bytes of a .bmodel file ---------------===//
//
// A .bmodel file consists of this header, one flatbuffer (schema/bmodel.fbs) and segments. Every byte of the file is
// covered: header and flatbuffer by |hash|, segments by their chunk hashes, and all bytes in between are zero. All
// fields are little endian.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_FILE_HEADER_H
#define BMODEL_FILE_HEADER_H

#include <cstdint>

namespace bmodel {

/// Follows PNG's signature: the first byte is not ASCII, and a text-mode transfer corrupts the line ends.
inline constexpr unsigned char kMagic[8] = {0x89, 'B', 'M', 'D', 'L', '\r', '\n', 0x1a};

/// Raised only if an old reader could misread a new file; additions do not raise it.
inline constexpr uint32_t kFormatVersion = 1;

/// Alignment in bytes of the start and end of segments, so that each segment can be mapped separately.
inline constexpr uint64_t kSegmentAlignment = 4096;

/// Alignment in bytes of tensors inside a segment or workspace.
inline constexpr uint64_t kTensorAlignment = 64;

struct FileHeader {
  unsigned char magic[8];
  uint32_t formatVersion;
  uint32_t headerBytes; ///< sizeof(FileHeader)
  uint64_t fileBytes;   ///< size of the whole file
  uint64_t tableOffset; ///< offset of the flatbuffer from the start of the file
  uint64_t tableBytes;
  uint64_t hash;        ///< XXH3-64 of the flatbuffer; the seed is the XXH3-64 of this header with hash = 0
  uint8_t reserved[16]; ///< zero
};
static_assert(sizeof(FileHeader) == 64, "the header's size is part of the format");

} // namespace bmodel

#endif // BMODEL_FILE_HEADER_H
