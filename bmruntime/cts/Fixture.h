// SPDX-License-Identifier: Apache-2.0
//===- Fixture.h - Models and helpers of the conformance suite ------------===//
#ifndef TESSERA_BMRUNTIME_CTS_FIXTURE_H
#define TESSERA_BMRUNTIME_CTS_FIXTURE_H

#include "bmodel_format/test/TestModel.h"
#include "bmrt/bmrt.hpp"

#include <gtest/gtest.h>

namespace bmrt::cts {

/// The compiled kernels.c (the build passes its path).
inline const std::vector<char> &kernelCode() {
  static const std::vector<char> code = bmodel::test::readBytes(BMRT_CTS_KERNELS);
  return code;
}

/// The kernels of kernelCode(), with contracts.
inline const std::vector<char> &contractCode() {
  static const std::vector<char> code = bmodel::test::readBytes(BMRT_CTS_CONTRACTS);
  return code;
}

/// Computes y = relu(x + w), then repeats the kernel "add" while the first byte of x is not 0. The loop does not change
/// x: it runs either not at all or forever.
struct Endless : bmodel::test::AddRelu {
  Endless() : AddRelu(kernelCode(), 1024) {
    using namespace bmodel;
    const uint32_t going = addTensor(stage(), "going", DType::Bool, std::vector<int64_t>{1});
    tensor(going).view_of = int32_t(x);
    LoopDefT loop;
    loop.body = 1, loop.condition = int32_t(going);
    auto body = std::make_unique<SubnetDefT>(subnet());
    body->name = "body";
    body->plan.pop_back();
    subnet().plan.push_back(std::make_unique<StepDefT>());
    subnet().plan.back()->op.Set(loop);
    stage().subnets.push_back(std::move(body));
  }
};

/// A float buffer that is aligned to 64 bytes.
class AlignedFloats {
public:
  explicit AlignedFloats(size_t count) : storage(count + 16), count(count) {}
  float *data() { return reinterpret_cast<float *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64); }
  float &operator[](size_t i) { return data()[i]; }
  size_t size() const { return count; }
  uint64_t bytes() const { return count * sizeof(float); }

private:
  std::vector<float> storage;
  size_t count;
};

/// The result that AddRelu computes.
inline std::vector<float> addRelu(const std::vector<float> &x, const std::vector<float> &w) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = std::max(x[i] + w[i], 0.0f);
  }
  return y;
}

inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

inline std::vector<float> someInput(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = float(int(i * 37 % 101) - 50) * 0.5f - float(i % 7);
  }
  return x;
}

/// Writes |model| and opens it.
template <typename TestModel>
Model openWritten(TestModel &model, const std::string &name, bool trust = false) {
  const std::string path = bmodel::test::temporaryPath(name);
  const std::string error = model.write(path);
  EXPECT_EQ(error, "");
  Model opened(path, trust);
  unlink(path.c_str()); // the mapping remains valid
  return opened;
}

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_FIXTURE_H
