//===- X86Target.h - Instruction-set variants of the x86 back end ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_X86TARGET_H
#define TESSERA_CODEGEN_X86_X86TARGET_H

#include "codegen/Kernels/VectorTarget.h"

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::x86 {

/// Instruction-set levels in ascending order; each includes the ones before it.
enum class Isa : uint8_t { V2, Avx2, Avx512 };

/// The instructions that generated code may use. The LLVM CPU is one of the generic psABI levels, never the model of
/// the compiling machine, so that the same input gives the same bytes everywhere.
struct X86Target {
  Isa isa = Isa::V2;
  bool vnni = false; ///< AVX512-VNNI (vpdpbusd, vpdpwssd); only with Avx512
  bool bf16 = false; ///< multiplies pairs of bf16 (AVX512-BF16's vdpbf16ps) and converts to bf16; only with Avx512
  bool amx = false;  ///< AMX tiles of bytes and bf16; only with vnni and bf16
  bool bf16Conversion = false; ///< converts to bf16 but multiplies bf16 as f32, since vdpbf16ps is slower here

  /// Returns the instruction-set level as in --chip: "x86-v2", "x86-avx2" or "x86-avx512", without the optional
  /// features.
  llvm::StringRef name() const;
  unsigned vectorBytes() const { return isa == Isa::Avx512 ? 64 : isa == Isa::Avx2 ? 32 : 16; }
  unsigned vectorRegisters() const { return isa == Isa::Avx512 ? 32 : 16; }
  /// Returns the number of elements of |elementBits| bits in one register.
  unsigned lanes(unsigned elementBits) const { return vectorBytes() * 8 / elementBits; }
  bool hasFma() const { return isa >= Isa::Avx2; }
  bool hasMasks() const { return isa == Isa::Avx512; }
  /// Returns the properties that the generic loop kernels use.
  kernels::VectorTarget vectors() const { return {.bytes = vectorBytes(), .fma = hasFma(), .masks = hasMasks()}; }

  /// Return the values for LLVM's -mcpu and -mattr.
  llvm::StringRef llvmCpu() const;
  std::string llvmFeatures() const;
  /// Returns the bits of bmodel/cpu_features.inc that a machine must have to run the code.
  uint64_t cpuFeatureBits() const;

  /// Parses a chip name. "x86" is the level of this machine; "x86-v2|-avx2|-avx512|-avx512vnni|-avx512bf16|-amx" name a
  /// level, which means the same on every machine: avx512bf16 includes VNNI, amx includes both, and the others do not
  /// use VNNI, BF16 or AMX. Returns nullopt for other names.
  static std::optional<X86Target> parse(llvm::StringRef chip);
  static X86Target native();
  /// Returns true if this machine can execute the code.
  bool runsHere() const;
  bool hasBf16Conversion() const { return bf16 || bf16Conversion; }
  /// Returns all names that parse() accepts.
  static std::vector<std::string> chips();
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_X86TARGET_H
