//===- Gpu.h - Test fixture of the PTX machine ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_TEST_GPU_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_TEST_GPU_H

#include "bmruntime/ptx_machine/Driver/CudaDriver.h"
#include "bmruntime/ptx_machine/PtxMachine.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace ptx::test {

/// A fresh primary context, with environment variables that are set while the object lives.
class Gpu {
public:
  explicit Gpu(const std::map<std::string, std::string> &environment = {}) : environment(environment) {
    for (auto &[name, value] : environment) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    // Later calls depend on these, so each must succeed.
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    ptxMachineReadOptions();
    ptxMachineClearFinding();
    ptxMachineClearCounts();
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  }
  ~Gpu() {
    cuCtxPopCurrent_v2(nullptr);
    cuDevicePrimaryCtxReset_v2(0);
    for (auto &each : environment) {
      unsetenv(each.first.c_str());
    }
    ptxMachineReadOptions();
  }
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Loads a module; |body| is the text after .version, .target and .address_size.
  CUresult load(const std::string &body, std::string *log = nullptr) {
    std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n" + body;
    char buffer[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {buffer, reinterpret_cast<void *>(sizeof buffer)};
    CUresult result = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    if (log) {
      *log = buffer;
    } else {
      EXPECT_EQ(result, CUDA_SUCCESS) << buffer;
    }
    return result;
  }

  CUfunction function(const char *name) {
    CUfunction result = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&result, module, name), CUDA_SUCCESS) << name;
    return result;
  }

  template <class T>
  CUdeviceptr upload(const std::vector<T> &values) {
    CUdeviceptr address = allocate(values.size() * sizeof(T));
    EXPECT_EQ(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
    return address;
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  template <class T>
  std::vector<T> download(CUdeviceptr address, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), address, count * sizeof(T)), CUDA_SUCCESS) << finding();
    return values;
  }

  template <class... T>
  CUresult launch(const char *name, unsigned blocks, unsigned threads, unsigned sharedBytes, T... arguments) {
    void *pointers[] = {&arguments..., nullptr};
    return cuLaunchKernel(function(name), blocks, 1, 1, threads, 1, 1, sharedBytes, nullptr, pointers, nullptr);
  }
  /// Launches one block of |threads| threads and waits for it.
  template <class... T>
  CUresult run(const char *name, unsigned threads, T... arguments) {
    return runGrid(name, 1, threads, arguments...);
  }
  template <class... T>
  CUresult runGrid(const char *name, unsigned blocks, unsigned threads, T... arguments) {
    CUresult result = launch(name, blocks, threads, 0, arguments...);
    return result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
  }

  static std::string finding() { return ptxMachineLastFinding(); }

  CUcontext context = nullptr;
  CUmodule module = nullptr;

private:
  std::map<std::string, std::string> environment;
};

} // namespace ptx::test

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_TEST_GPU_H
