// SPDX-License-Identifier: Apache-2.0
//===- Footprint_test.cpp - Footprints against a byte-by-byte reference -----===//
//
// If the footprints of two commands wrongly seem disjoint, the compiler omits their wait, and the checker, which uses
// the same function, does not notice. This test therefore compares footprints with the formula of isa.h, element by
// element and byte by byte.
//===----------------------------------------------------------------------===//
#include "Footprint.h"

#include "bmodel_format/test/TestChip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

using namespace bmodel::npu;

namespace {

/// Returns every byte that a copy reads or writes.
std::set<uint64_t> bytesOf(const Tensor &t, const Shape &shape, const Chip &chip) {
  std::set<uint64_t> bytes;
  bool isLocal = t.region == Region::local;
  for (int64_t n = 0; n < shape.dims[0]; ++n) {
    for (int64_t c = 0; c < shape.dims[1]; ++c) {
      int64_t place = isLocal ? t.lane + c : 0, lane = place % chip.lanes, row = isLocal ? place / chip.lanes : c;
      for (int64_t h = 0; h < shape.dims[2]; ++h) {
        for (int64_t w = 0; w < shape.dims[3]; ++w) {
          int64_t at = int64_t(t.offset) + n * t.strides[0] + row * t.strides[1] + h * t.strides[2] + w * t.strides[3];
          for (size_t k = 0; k < sizeOf(t.type); ++k) {
            bytes.insert(uint64_t(lane * chip.laneBytes + at) + k);
          }
        }
      }
    }
  }
  return bytes;
}

/// Random tensors of one shape: dense, with gaps, overlapping, with negative strides, or with strides of 0. They wrap
/// around the lanes and lie at the ends of lanes or anywhere.
class RandomPlace {
public:
  RandomPlace(std::mt19937 &generator, const Chip &chip) : generator(generator), chip(chip) {}

  Shape shape() {
    Shape result;
    for (uint32_t &dim : result.dims) {
      dim = below(3) ? 1 + below(4) : 1;
    }
    if (!below(2)) {
      result.dims[1] = 1 + below(3 * chip.lanes);
    }
    return result;
  }

  Tensor tensor(const Shape &shape, Type type) {
    while (true) {
      if (std::optional<Tensor> result = anyTensor(shape, type)) {
        return *result;
      }
    }
  }

private:
  uint32_t below(uint32_t limit) { return uint32_t(generator() % limit); }

  /// Returns nothing if the strides reach beyond the region.
  std::optional<Tensor> anyTensor(const Shape &shape, Type type) {
    Tensor result{.region = below(4) ? Region::local : Region::workspace, .type = type};
    result.lane = result.region == Region::local ? uint16_t(below(chip.lanes)) : 0;
    int64_t extents[4] = {shape.dims[0], shape.dims[1], shape.dims[2], shape.dims[3]};
    extents[1] = result.region == Region::local ? (result.lane + extents[1] - 1) / chip.lanes + 1 : extents[1];
    setStrides(result, extents);
    int64_t below = 0, above = int64_t(sizeOf(type)); // bytes on both sides of the first element
    for (int i = 0; i < 4; ++i) {
      int64_t reach = (extents[i] - 1) * result.strides[i];
      (reach < 0 ? below : above) += std::abs(reach);
    }
    int64_t size = result.region == Region::local ? int64_t(chip.laneBytes) : 1 << 20;
    if (below + above > size) {
      return std::nullopt;
    }
    result.offset = offsetFor(below, above, int64_t(sizeOf(type)), size);
    return result;
  }

  /// Sets the strides of dims in a random order; each may or may not exceed the extent of the previous dims.
  void setStrides(Tensor &tensor, const int64_t (&extents)[4]) {
    int order[] = {0, 1, 2, 3};
    std::shuffle(std::begin(order), std::end(order), generator);
    int32_t element = int32_t(sizeOf(tensor.type)), span = element;
    for (int axis : order) {
      uint32_t kind = below(12);
      int32_t far = (int32_t(chip.laneBytes) - span) / int32_t(std::max<int64_t>(extents[axis] - 1, 1));
      int32_t stride = kind == 11  ? far / element * element
                       : kind == 0 ? 0
                       : kind <= 2 ? element * int32_t(below(7))
                       : kind <= 4 ? span + element * int32_t(below(4))
                                   : span;
      tensor.strides[axis] = below(5) ? stride : -stride;
      span = std::max(span, stride * int32_t(extents[axis]));
    }
  }

  uint64_t offsetFor(int64_t below, int64_t above, int64_t element, int64_t size) {
    int64_t first = this->below(2) ? below : size - above - 64 * element;
    int64_t offset = first + element * int64_t(this->below(65));
    return uint64_t(std::clamp(offset / element * element, below, size - above));
  }

  std::mt19937 &generator;
  const Chip &chip;
};

/// A chip so small that tensors of the sizes above span its lanes completely, so that the bytes of one lane continue in
/// the next.
Chip smallChip() {
  return changedEdge({"name=small", "lanes=5", "local_memory.banks=2", "local_memory.port_bytes=8",
                      "local_memory.bytes_per_lane=1024"});
}

class FootprintsOf : public testing::TestWithParam<const char *> {
protected:
  const Chip chip = GetParam() == std::string("small") ? smallChip()
                    : GetParam() == std::string("odd") ? oddChip()
                                                       : chipNamed(GetParam());
  std::mt19937 generator{7};

  /// A copy between two random places, and the bytes of y and x.
  struct Copy {
    std::vector<Footprint> footprints;
    std::set<uint64_t> bytes[2];
    Region regions[2];
  };
  Copy any() {
    constexpr Type kTypes[] = {Type::i8, Type::i16, Type::f32};
    RandomPlace places(generator, chip);
    copy_command copy;
    copy.shape = places.shape();
    copy.y = places.tensor(copy.shape, kTypes[generator() % 3]);
    copy.x = places.tensor(copy.shape, copy.y.type);
    return {footprintsOf(encode(copy), chip),
            {bytesOf(copy.y, copy.shape, chip), bytesOf(copy.x, copy.shape, chip)},
            {copy.y.region, copy.x.region}};
  }
};
INSTANTIATE_TEST_SUITE_P(Footprint, FootprintsOf, testing::Values("npu-edge", "npu-base", "odd", "small"),
                         [](const auto &each) {
                           std::string name = each.param;
                           return name.substr(name.find('-') + 1);
                         });

/// Returns the first byte that is in both sets, or nothing.
std::optional<uint64_t> firstOfBoth(const std::set<uint64_t> &a, const std::set<uint64_t> &b) {
  auto found = std::find_if(a.begin(), a.end(), [&](uint64_t byte) { return b.count(byte) > 0; });
  return found == a.end() ? std::nullopt : std::optional(*found);
}

} // namespace

TEST_P(FootprintsOf, RandomCopiesHoldTheirBytes) {
  for (int round = 0; round < 2000; ++round) {
    Copy copy = any();
    ASSERT_EQ(copy.footprints.size(), 2u);
    for (int k = 0; k < 2; ++k) {
      const Footprint &result = copy.footprints[size_t(k)];
      std::set<uint64_t> bytes;
      uint64_t laneBytes = result.region == Region::local ? chip.laneBytes : UINT64_MAX;
      for (Interval each : result.intervals) {
        ASSERT_LT(each.begin, each.end) << round;
        ASSERT_TRUE(bytes.empty() || *bytes.rbegin() + 1 < each.begin) << round << ": sorted, apart from each other";
        for (uint64_t byte = each.begin; byte < each.end; ++byte) {
          bytes.insert(byte);
          ASSERT_GE(byte % laneBytes, result.inLane.begin) << round;
          ASSERT_LT(byte % laneBytes, result.inLane.end) << round;
        }
      }
      EXPECT_EQ(bytes, copy.bytes[k]) << round;
      EXPECT_EQ(result.written, k == 0) << round;
    }
  }
}

TEST_P(FootprintsOf, RandomCopiesMeetWhereTheirBytesDo) {
  int met = 0, apart = 0, inSight = 0; // inSight: each lies between the other's first and last byte
  for (int round = 0; round < 1500; ++round) {
    Copy a = any(), b = any();
    bool mustWait = false;
    for (int i = 0; i < 4; ++i) {
      int ofA = i / 2, ofB = i % 2;
      const std::set<uint64_t> &x = a.bytes[ofA], &y = b.bytes[ofB];
      std::optional<uint64_t> first = a.regions[ofA] == b.regions[ofB] ? firstOfBoth(x, y) : std::nullopt;
      uint64_t at = 0, back = 0;
      ASSERT_EQ(meet(a.footprints[size_t(ofA)], b.footprints[size_t(ofB)], at), first.has_value()) << round;
      ASSERT_EQ(meet(b.footprints[size_t(ofB)], a.footprints[size_t(ofA)], back), first.has_value()) << round;
      EXPECT_EQ(at, first.value_or(0)) << round;
      EXPECT_EQ(back, first.value_or(0)) << round;
      first ? ++met : ++apart;
      inSight += !first && a.regions[ofA] == b.regions[ofB] && *x.begin() < *y.rbegin() && *y.begin() < *x.rbegin();
      mustWait |= first && (ofA == 0 || ofB == 0);
    }
    EXPECT_EQ(conflict(a.footprints, b.footprints), mustWait) << round;
  }
  EXPECT_GT(met, 300);
  EXPECT_GT(apart, 300);
  EXPECT_GT(inSight, 100);
}
