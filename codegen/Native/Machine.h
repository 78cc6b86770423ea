//===- Machine.h - A CPU as LLVM and the file format name it ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_MACHINE_H
#define TESSERA_CODEGEN_NATIVE_MACHINE_H

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace tessera::native {

/// The CPU that kernels are compiled for.
struct Machine {
  std::string triple;        ///< LLVM's target triple; determines the machine of the ELF file
  std::string cpu, features; ///< values for LLVM's -mcpu and -mattr
  /// Text that no other machine with different code has. It is part of the kernels' keys and thus of their symbols.
  std::string key;
  uint64_t featureBits = 0;     ///< features of bmodel/cpu_features.inc that the code requires
  unsigned preferredVector = 0; ///< LLVM's prefer-vector-width in bits; 0: the default of |cpu|
  unsigned pageBytes = 4096;    ///< largest page size of the machine's operating systems
  /// Registers the machine's LLVM back end; called from several threads, more than once. Each family passes its own, so
  /// that a build links only the back ends that it needs.
  void (*registerBackend)() = nullptr;
  /// If set, changes the LLVM IR of each kernel before it is optimised; returns false if the kernel cannot be compiled.
  /// Tests use it to run code for instructions that the machine at hand lacks.
  bool (*rewrite)(llvm::Module &kernel) = nullptr;
};

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_MACHINE_H
