// SPDX-License-Identifier: Apache-2.0
//===- Backend.cpp - The back ends this library was built with, and plug-ins ---===//
#include "Backend.h"

#include "../npu/NpuBackend.h"
#include "../x86/X86Backend.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>

using namespace bmrt;
using namespace bmrt::core;

namespace {

#ifndef BMRT_WITH_NPU
/// Loads the plug-in beside this library; the loader itself knows that folder, whatever the current one is by now.
bmrt_code_t loadPlugin(const char *file, bmodel::SubnetKind kind, const Backend **out, bmrt_status_t *status) {
  char path[64] = "$ORIGIN/";
  strncat(path, file, sizeof path - strlen(path) - 1);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *cause = dlerror();
    Dl_info own{};
    dladdr(reinterpret_cast<const void *>(&core::findBackend), &own);
    return BMRT_FAIL(status, UNSUPPORTED, "%s subnets need the back end %s beside %.150s: %.200s",
                     EnumNameSubnetKind(kind), file, own.dli_fname ? own.dli_fname : "this library",
                     cause ? cause : "it cannot be loaded");
  }
  const auto *plugin = static_cast<const Plugin *>(dlsym(library, "bmrt_plugin"));
  if (!plugin || strcmp(plugin->release, kPluginRelease) != 0) {
    return BMRT_FAIL(status, UNSUPPORTED, "the back end %s is of release %.40s, this library of %s: install both anew",
                     file, plugin ? plugin->release : "unknown", kPluginRelease);
  }
  *out = plugin->backend;
  return BMRT_OK;
}

bmrt_code_t findNpu(const Backend **out, bmrt_status_t *status) {
  // It stays loaded. Where two threads come at once, both get the same library.
  static std::atomic<const Backend *> loaded;
  if (!(*out = loaded.load())) {
    BMRT_RETURN_IF_ERROR(loadPlugin("libbmrt_npu.so", bmodel::SubnetKind::Npu, out, status));
    loaded = *out;
  }
  return BMRT_OK;
}
#else
bmrt_code_t findNpu(const Backend **out, bmrt_status_t *) {
  *out = &npu::backend;
  return BMRT_OK;
}
#endif

} // namespace

bmrt_code_t core::findBackend(bmodel::SubnetKind kind, const Backend **out, bmrt_status_t *status) {
  switch (kind) {
  case bmodel::SubnetKind::X86:
    *out = &x86::backend;
    return BMRT_OK;
  case bmodel::SubnetKind::Host:
    *out = &x86::hostBackend;
    return BMRT_OK;
  case bmodel::SubnetKind::Npu:
    return findNpu(out, status);
  default:
    return BMRT_FAIL(status, UNSUPPORTED, "it is for kind %s, which this runtime was built without",
                     EnumNameSubnetKind(kind));
  }
}
