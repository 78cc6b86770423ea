// SPDX-License-Identifier: Apache-2.0
//===- X86Backend.cpp - Native code on the CPU ----------------------------===//
#include "X86Backend.h"

#include "../core/Memory.h"
#include "ElfImage.h"
#include "bmodel/cpu_features.h"

using namespace bmrt;
using bmrt::core::CodeImage;

namespace {

class X86Image final : public CodeImage {
public:
  void destroy() override { core::destroyObject(this); }
  bm_kernel_fn findKernel(const char *symbol) const override {
    return reinterpret_cast<bm_kernel_fn>(elf.findFunction(symbol));
  }
  bmrt_code_t findContract(const char *symbol, core::KernelContract &out, bmrt_status_t *status) const override {
    return elf.findContract(symbol, out, status);
  }

  x86::ElfImage elf;
};

bmrt_code_t check(const bmodel::SubnetDef &subnet, bmrt_status_t *status) {
  const uint64_t missing = subnet.cpu_features() & ~bmodel::cpuFeatures();
  if (missing == 0) {
    return BMRT_OK;
  }
  char names[160];
  return BMRT_FAIL(status, UNSUPPORTED,
                   "subnet '%.60s' was compiled for %.40s; this CPU or operating system lacks %s; "
                   "compile the model for an older chip (--chip x86-avx2 or x86-v2)",
                   subnet.name()->c_str(), subnet.isa() ? subnet.isa()->c_str() : "another CPU",
                   bmodel::cpuFeatureNames(missing, names, sizeof(names)));
}

bmrt_code_t load(const unsigned char *data, uint64_t bytes, CodeImage **out, bmrt_status_t *status) {
  X86Image *image = core::createObject<X86Image>();
  if (!image) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a code image");
  }
  const bmrt_code_t code = image->elf.load(data, bytes, status);
  if (code != BMRT_OK) {
    image->destroy();
    return code;
  }
  *out = image;
  return BMRT_OK;
}

} // namespace

const core::Backend x86::backend = {bmodel::SubnetKind::X86, check, load};
const core::Backend x86::hostBackend = {bmodel::SubnetKind::Host, check, load};
