//===- X86Target.cpp - Instruction-set variants of the x86 back end -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/X86Target.h"

#include "bmodel/cpu_features.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/TargetParser/Host.h"

namespace tessera::x86 {

/// Name of the chip that stands for the compiling machine.
static constexpr char kNative[] = "x86";

llvm::StringRef X86Target::name() const {
  switch (isa) {
  case Isa::V2:
    return "x86-v2";
  case Isa::Avx2:
    return "x86-avx2";
  case Isa::Avx512:
    return "x86-avx512";
  }
  llvm_unreachable("covered switch");
}

llvm::StringRef X86Target::llvmCpu() const {
  switch (isa) {
  case Isa::V2:
    return "x86-64-v2";
  case Isa::Avx2:
    return "x86-64-v3";
  case Isa::Avx512:
    return "x86-64-v4";
  }
  llvm_unreachable("covered switch");
}

std::string X86Target::llvmFeatures() const {
  // Without -prefer-256-bit LLVM uses zmm registers for 512-bit vectors.
  std::string features = isa == Isa::Avx512 ? "-prefer-256-bit" : "";
  if (vnni) {
    features += ",+avx512vnni";
  }
  if (hasBf16Conversion()) {
    features += ",+avx512bf16";
  }
  if (amx) {
    features += ",+amx-tile,+amx-int8,+amx-bf16";
  }
  return features;
}

uint64_t X86Target::cpuFeatureBits() const {
  uint64_t bits = isa == Isa::Avx512 ? bmodel::kX86V4 : isa == Isa::Avx2 ? bmodel::kX86V3 : bmodel::kX86V2;
  return bits | (vnni ? bmodel::BM_CPU_AVX512VNNI : 0) | (hasBf16Conversion() ? bmodel::BM_CPU_AVX512BF16 : 0) |
         (amx ? bmodel::kX86Amx : 0);
}

bool X86Target::runsHere() const { return !(cpuFeatureBits() & ~native().cpuFeatureBits()); }

/// Returns true if vdpbf16ps multiplies faster than f32's multiply-adds do. It sums two products, and
///   AMD      (Zen 4, Zen 5) begins as many as multiply-adds: twice f32's rate,
///   Intel    with AMX (Sapphire Rapids and later) begins a quarter as many: half of f32's rate (bmrt_peak), also in
///            virtual machines that hide AMX,
///   Intel    Cooper Lake begins half as many: f32's rate.
static bool hasFastBf16Pairs() {
  using llvm::sys::detail::x86::VendorSignatures;
  return llvm::sys::detail::x86::getVendorSignature() == VendorSignatures::AUTHENTIC_AMD;
}

X86Target X86Target::native() {
  uint64_t cpu = bmodel::requestCpuFeatures(~uint64_t(0));
  auto has = [&](uint64_t bits) { return (cpu & bits) == bits; };
  X86Target target;
  target.isa = has(bmodel::kX86V4) ? Isa::Avx512 : has(bmodel::kX86V3) ? Isa::Avx2 : Isa::V2;
  target.vnni = target.isa == Isa::Avx512 && has(bmodel::BM_CPU_AVX512VNNI);
  const bool hasBf16 = target.isa == Isa::Avx512 && has(bmodel::BM_CPU_AVX512BF16);
  target.amx = target.vnni && hasBf16 && has(bmodel::kX86Amx);
  target.bf16 = hasBf16 && (target.amx || hasFastBf16Pairs());
  target.bf16Conversion = hasBf16 && !target.bf16;
  return target;
}

namespace {
struct NamedLevel {
  llvm::StringRef name;
  X86Target target;
};
} // namespace

static constexpr NamedLevel kLevels[] = {{"x86-v2", {Isa::V2}},
                                         {"x86-avx2", {Isa::Avx2}},
                                         {"x86-avx512", {Isa::Avx512}},
                                         {"x86-avx512vnni", {Isa::Avx512, /*vnni=*/true}},
                                         {"x86-avx512bf16", {Isa::Avx512, /*vnni=*/true, /*bf16=*/true}},
                                         {"x86-amx", {Isa::Avx512, /*vnni=*/true, /*bf16=*/true, /*amx=*/true}}};

std::optional<X86Target> X86Target::parse(llvm::StringRef chip) {
  if (chip == kNative) {
    return native();
  }
  const auto *level = llvm::find_if(kLevels, [&](const NamedLevel &each) { return each.name == chip; });
  return level == std::end(kLevels) ? std::nullopt : std::optional(level->target);
}

std::vector<std::string> X86Target::chips() {
  std::vector<std::string> names{kNative};
  for (const NamedLevel &level : kLevels) {
    names.push_back(level.name.str());
  }
  return names;
}

} // namespace tessera::x86
