// SPDX-License-Identifier: Apache-2.0
//===- SharedConstants.cpp - Constants of several files, equal ones once --===//
#include "SharedConstants.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace bmodel {

void ConstantPieces::add(uint64_t begin, uint64_t end) {
  if (begin < end) {
    // Where a piece begins stays as much aligned as it was: bursts and vectors count on it.
    pieces.push_back({begin & ~(kTensorAlignment - 1), end});
  }
}

void ConstantPieces::add(const npu::Operand &operand) {
  if (operand.tensor.region != npu::Region::constants) {
    return;
  }
  int64_t begin = int64_t(operand.tensor.offset), last = begin;
  for (int i = 0; i < 4; ++i) {
    const int64_t way = (int64_t(operand.shape.dims[i]) - 1) * operand.tensor.strides[i];
    (way < 0 ? begin : last) += way;
  }
  add(uint64_t(begin), uint64_t(last) + npu::sizeOf(operand.tensor.type));
}

void ConstantPieces::close() {
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Piece &piece : pieces) {
    if (kept && piece.begin < pieces[kept - 1].end) {
      pieces[kept - 1].end = std::max(pieces[kept - 1].end, piece.end);
    } else {
      pieces[kept++] = piece;
    }
  }
  pieces.resize(kept);
}

uint64_t ConstantPieces::relocate(uint64_t offset) const {
  auto behind = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                 [](uint64_t at, const Piece &piece) { return at < piece.begin; });
  assert(behind != pieces.begin());
  return (behind - 1)->place + (offset - (behind - 1)->begin);
}

void SharedConstants::take(ConstantPieces &pieces, const unsigned char *data) {
  isUsed = true;
  for (ConstantPieces::Piece &piece : pieces.pieces) {
    const std::string_view bytes(reinterpret_cast<const char *>(data) + piece.begin, piece.end - piece.begin);
    auto [entry, isNew] = known.try_emplace(bytes, 0);
    if (isNew) {
      entry->second = segment.append({bytes.data(), bytes.size()});
      storedBytes += bytes.size();
    }
    piece.place = entry->second;
    takenBytes += bytes.size();
  }
}

void relocate(npu::Descriptor &command, const ConstantPieces &pieces) {
  const npu::CommandText *text = npu::findCommand(command.header.opcode);
  for (const npu::FieldText &field : text->fields) {
    if (std::string_view(field.type) != "Tensor") {
      continue;
    }
    npu::Tensor tensor;
    std::memcpy(&tensor, command.body + field.offset, sizeof tensor);
    if (tensor.region == npu::Region::constants) {
      tensor.offset = pieces.relocate(tensor.offset);
      std::memcpy(command.body + field.offset, &tensor, sizeof tensor);
    }
  }
}

} // namespace bmodel
