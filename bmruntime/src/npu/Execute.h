// SPDX-License-Identifier: Apache-2.0
//===- Execute.h - Execution of single commands -----------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_EXECUTE_H
#define TESSERA_BMRUNTIME_SRC_NPU_EXECUTE_H

#include "Memories.h"

#include <initializer_list>

namespace bmrt::npu {

inline constexpr const char *kNoMemory = "memory has run out";

/// Temporary buffers of commands. The memory is reused from command to command; its contents are not.
class Scratch {
public:
  /// Returns `count` elements, aligned for vectors, in one of four buffers; null if memory has run out.
  template <typename T>
  T *take(uint32_t place, uint64_t count) {
    uint64_t bytes = count * sizeof(T);
    if (sizes[place] < bytes) {
      sizes[place] = 0;
      if (!buffers[place].allocate(bytes)) {
        return nullptr;
      }
      sizes[place] = bytes;
    }
    return reinterpret_cast<T *>(buffers[place].data());
  }

private:
  core::Buffer buffers[4];
  uint64_t sizes[4] = {};
};

/// The state that commands work on.
struct Machine {
  const Chip &chip;
  Memories memories;
  Scratch scratch = {};
};

// Each function executes one command whose operands have been checked. Returns null, or an error that occurred at run
// time.
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  const char *execute(const bmodel::npu::name##_command &command, Machine &machine);
#include "bmodel/npu/isa.inc"

/// Merges h and w into long rows if all tensors are contiguous across rows. Channels cannot be merged, because they are
/// in different lanes.
inline void joinRows(bmodel::npu::Shape &shape, std::initializer_list<Tensor *> tensors) {
  for (const Tensor *each : tensors) {
    if (each->region != Region::none && each->strides[2] != int64_t(each->strides[3]) * shape.dims[3]) {
      return;
    }
  }
  shape.dims[3] *= shape.dims[2];
  shape.dims[2] = 1;
}

/// Selects the parameters of the output stage: per channel or per column.
enum class Parameters : uint8_t { ofChannels, ofColumns };

/// The output stage: converts sums of one channel to elements of y. Sums of integers are int32, sums of floats are f32.
/// Positions are numbered through the rows of the command's shape.
class OutputStage {
public:
  /// r and p may be absent.
  OutputStage(const bmodel::npu::Output &output, const Machine &machine, const bmodel::npu::Shape &shape,
              const Tensor &y, const Tensor &r, const Tensor &p, Parameters parameters = Parameters::ofChannels);

  void store(const int32_t *sums, uint32_t n, uint32_t c, uint64_t at, uint32_t count) const {
    split(sums, n, c, at, count);
  }
  void store(const float *sums, uint32_t n, uint32_t c, uint64_t at, uint32_t count) const {
    split(sums, n, c, at, count);
  }

private:
  /// bias contains the bits of an f32 for float sums; factor contains the bits of the mantissa for integral output
  /// stages.
  struct Channel {
    int32_t bias;
    float factor;
    int32_t shift;
    float gain;
  };
  /// A part of a row: elements from (n,c,h,w) on.
  struct Place {
    uint32_t n, c, h, w;
  };
  template <typename Sum>
  void split(const Sum *sums, uint32_t n, uint32_t c, uint64_t at, uint32_t count) const;
  Channel channel(uint32_t c) const;
  template <typename Sum>
  void storeColumns(const Sum *sums, const Place &place, uint32_t count) const;
  void storeRow(const int32_t *sums, const Channel &channel, const Place &place, uint32_t count) const;
  void storeRow(const float *sums, const Channel &channel, const Place &place, uint32_t count) const;
  void requantise(const int32_t *sums, float *v, const Channel &channel, uint32_t count) const;
  template <typename Scale, typename Gain>
  void finish(float *v, Scale scaleAll, Gain gainAll, const Place &place, uint32_t count) const;
  void finish(float *v, const Channel &channel, const Place &place, uint32_t count) const;
  void addResidual(float *v, const Place &place, uint32_t count) const;

  const bmodel::npu::Output &output;
  const bool twice; ///< integral stages round like TensorFlow Lite
  uint32_t width;   ///< of rows; all rows are merged into one if y and r are contiguous across rows
  Rows y, r, p;
  const Parameters parameters;
};

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_EXECUTE_H
