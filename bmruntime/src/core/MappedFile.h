// SPDX-License-Identifier: Apache-2.0
//===- MappedFile.h - The bytes of a file, mapped read-only ---------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_MAPPEDFILE_H
#define TESSERA_BMRUNTIME_SRC_CORE_MAPPEDFILE_H

#include "Status.h"

#include <cstdint>
#include <utility>

namespace bmrt::core {

/// Either an owned, private, read-only mapping, or memory of the caller.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(const void *data, uint64_t bytes) : start(static_cast<const unsigned char *>(data)), length(bytes) {}
  MappedFile(MappedFile &&other) noexcept
      : start(other.start), length(other.length), owned(std::exchange(other.owned, false)) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(start, other.start);
    std::swap(length, other.length);
    std::swap(owned, other.owned);
    return *this;
  }
  ~MappedFile();

  /// Maps the regular file at |path|.
  static bmrt_code_t open(const char *path, MappedFile &out, bmrt_status_t *status);

  const unsigned char *data() const { return start; }
  uint64_t bytes() const { return length; }
  bool isMapped() const { return owned; }

private:
  const unsigned char *start = nullptr;
  uint64_t length = 0;
  bool owned = false;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_MAPPEDFILE_H
