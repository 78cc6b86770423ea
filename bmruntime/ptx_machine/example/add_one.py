#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds 1 to 8 floats on a GPU through CUDA's driver API. The argument is the number of threads."""
import sys
from ctypes import CDLL, byref, c_float, c_int, c_size_t, c_uint64, c_void_p, cast

KERNEL = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 data)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd3], %f2;
  ret;
}
"""
cuda = CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    """Calls a function of the driver API. Ends the program if it fails."""
    if code := getattr(cuda, name)(*arguments):
        sys.exit(f"{name} failed with code {code}")


context, module, function, data = c_void_p(), c_void_p(), c_void_p(), c_uint64()
threads = int(sys.argv[1])
values = (c_float * 8)(*range(8))
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", byref(context), 0)
call("cuCtxPushCurrent_v2", context)
call("cuModuleLoadData", byref(module), KERNEL)
call("cuModuleGetFunction", byref(function), module, b"add_one")
call("cuMemAlloc_v2", byref(data), c_size_t(32))
call("cuMemcpyHtoD_v2", data, values, c_size_t(32))
parameters = (c_void_p * 1)(cast(byref(data), c_void_p))
call("cuLaunchKernel", function, *(c_int(size) for size in (1, 1, 1, threads, 1, 1, 0)), None, parameters, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", values, data, c_size_t(32))
print(*values)
