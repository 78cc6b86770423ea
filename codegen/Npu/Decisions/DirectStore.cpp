//===- DirectStore.cpp - Results stored directly to outputs ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Decisions/DirectStore.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hw = bmodel::npu;
using llvm::SmallVector;

namespace tessera::npu {
namespace {

/// One dim of a nest over a tile: strides in bytes in local memory and in the result; for channels, the former in
/// lanes.
struct Loop {
  int64_t size, local, to;
};

/// Returns the range of indices i of a dim for which begin + i * step is in [low, high).
std::pair<int64_t, int64_t> within(const DirectStore::Dim &dim, int64_t begin, int64_t low, int64_t high) {
  int64_t first = std::max<int64_t>(0, llvm::divideCeilSigned(low - begin, dim.step));
  int64_t end = std::min(dim.size, llvm::divideCeilSigned(high - begin, dim.step));
  return {first, std::max(first, end)};
}

/// Iterates over all |loops| except the innermost ones, which become the dims of a command.
class Walker {
public:
  Walker(const TileView &local, const Tensor &to, hw::copy_command frame, const Chip &chip)
      : local(local), to(to), frame(frame), chip(chip) {}

  void walk(llvm::ArrayRef<Loop> lanes, llvm::ArrayRef<Loop> others, int64_t lane, int64_t inLane, int64_t result) {
    if (llvm::ArrayRef<Loop> rest = lanes.empty() ? others : lanes; !rest.empty()) {
      for (int64_t i = 0; i < rest.back().size; ++i) {
        int64_t step = i * rest.back().local, there = result + i * rest.back().to;
        lanes.empty() ? walk({}, others.drop_back(), lane, inLane + step, there)
                      : walk(lanes.drop_back(), others, lane + step, inLane, there);
      }
      return;
    }
    TileView from = slice(local, 1, uint32_t(lane), frame.shape.dims[1], chip);
    hw::copy_command copy = frame;
    copy.x.offset = uint64_t(int64_t(from.tensor.offset) + inLane), copy.x.lane = from.tensor.lane;
    copy.y.offset = uint64_t(int64_t(to.offset) + result);
    stores.push_back(hw::encode(copy));
  }

  std::vector<Descriptor> stores;

private:
  const TileView &local;
  const Tensor &to;
  hw::copy_command frame;
  const Chip &chip;
};

} // namespace

/// Returns the commands for a tile that cuts through a dim of the value that consists of several dims: iterates over
/// one of these.
static std::vector<Descriptor> stepByStep(const DirectStore &directStore, int d, const TileView &local,
                                          const int64_t *at) {
  std::vector<Descriptor> stores;
  DirectStore part = directStore;
  DirectStore::Dim dim = part.dims[d].pop_back_val();
  for (int64_t i = 0; i < dim.size; ++i) {
    llvm::append_range(stores, part.commands(local, at));
    part.begin[d] += dim.step, part.to.offset += uint64_t(dim.stride);
  }
  return stores;
}

std::vector<Descriptor> DirectStore::commands(const TileView &local, const int64_t *at) const {
  SmallVector<Loop> lanes, others;
  int64_t lane = 0, inLane = 0, result = 0;
  for (int d = 0; d < 4; ++d) {
    int64_t low = at[d], high = at[d] + local.dim(unsigned(d)), first = begin[d], last = begin[d];
    for (const Dim &dim : dims[d]) {
      last += (dim.size - 1) * dim.step;
    }
    if (last < low || first >= high) {
      return {};
    }
    bool isCut = first < low || last >= high;
    if (isCut && dims[d].size() > 1) {
      return stepByStep(*this, d, local, at);
    }
    for (const Dim &dim : dims[d]) {
      auto [from, end] = isCut ? within(dim, first, low, high) : std::pair(int64_t(0), dim.size);
      if (from == end) {
        return {};
      }
      first += from * dim.step, result += from * dim.stride;
      int64_t stride = d == 1 ? dim.step : dim.step * local.tensor.strides[d];
      (d == 1 ? lanes : others).push_back({end - from, stride, dim.stride});
    }
    (d == 1 ? lane : inLane) += (first - low) * (d == 1 ? 1 : int64_t(local.tensor.strides[d]));
  }
  hw::copy_command frame;
  frame.x = local.tensor, frame.y = to, frame.shape = Shape{{1, 1, 1, 1}};
  std::fill(std::begin(frame.y.strides), std::end(frame.y.strides), 0);
  auto setDim = [&](int d, const Loop &loop) {
    frame.shape.dims[d] = uint32_t(loop.size), frame.y.strides[d] = int32_t(loop.to);
    frame.x.strides[d] = d == 1 ? frame.x.strides[1] : int32_t(loop.local);
  };
  // Neighbouring channels are in neighbouring lanes.
  llvm::stable_sort(lanes, [](const Loop &a, const Loop &b) { return a.local < b.local; });
  if (!lanes.empty() && lanes.front().local == 1) {
    setDim(1, lanes.front());
    lanes.erase(lanes.begin());
  }
  llvm::stable_sort(others, [](const Loop &a, const Loop &b) { return a.local < b.local; });
  for (int d : {3, 2, 0}) {
    if (!others.empty()) {
      setDim(d, others.front());
      others.erase(others.begin());
    }
  }
  Walker walker(local, to, frame, *chip);
  walker.walk(lanes, others, lane, inLane, result);
  return walker.stores;
}

std::optional<DirectStore> makeDirectStore(const LoopNest &nest, llvm::ArrayRef<int64_t> offsets, const Tensor &to,
                                           llvm::ArrayRef<int64_t> shape, int64_t first, const Chip &chip) {
  int64_t bytes = int64_t(hw::sizeOf(to.type)), width = shape[3], plane = shape[2] * width, image = shape[1] * plane;
  DirectStore stores;
  stores.chip = &chip;
  stores.to = to, stores.to.offset += uint64_t(offsets[0] * bytes);
  int64_t from = offsets[1] - first;
  stores.begin[0] = 0, stores.begin[1] = llvm::divideFloorSigned(from, plane), from -= stores.begin[1] * plane;
  stores.begin[2] = from / width, stores.begin[3] = from % width;
  for (size_t i = 0; i < nest.sizes.size(); ++i) {
    int64_t size = nest.sizes[i], stride = nest.strides[0][i] * bytes, step = nest.strides[1][i];
    if (step <= 0) {
      return std::nullopt;
    }
    if (shape[0] > 1 && step % image == 0) {
      stores.dims[0].push_back({size, step / image, stride});
    } else if (step % plane == 0) {
      stores.dims[1].push_back({size, step / plane, stride});
    } else if (step % width == 0) {
      stores.dims[2].push_back({size, step / width, stride});
    } else if (step == 1 && size % width == 0 && stores.begin[3] == 0) { // rows one after another
      stores.dims[2].push_back({size / width, 1, stride * width});
      stores.dims[3].push_back({width, 1, stride});
    } else {
      stores.dims[3].push_back({size, step, stride});
    }
  }
  for (int d : {1, 2, 3}) { // dims that leave their image, plane or row are not supported
    int64_t last = stores.begin[d];
    for (const DirectStore::Dim &dim : stores.dims[d]) {
      last += (dim.size - 1) * dim.step;
    }
    if (last >= shape[size_t(d)] && (d > 1 || shape[0] > 1)) {
      return std::nullopt;
    }
  }
  return shape[0] > 1 && stores.begin[1] < 0 ? std::nullopt : std::optional(stores);
}

} // namespace tessera::npu
