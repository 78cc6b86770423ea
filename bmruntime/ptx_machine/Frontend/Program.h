//===- Program.h - Decoded kernels ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// A kernel is one array of instructions: calls are inlined, operands are byte offsets into a warp's register file, and
// immediates are registers that are never written. A register holds its 32 lanes contiguously, 2, 4 or 8 bytes each; a
// predicate is one word with one bit per lane.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PROGRAM_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PROGRAM_H

#include "bmruntime/ptx_machine/Frontend/Ptx.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ptx {

constexpr unsigned kLanes = 32;
constexpr uint32_t kNone = ~0u; ///< no operand

/// One bit per lane.
using Mask = uint32_t;
constexpr Mask kAllLanes = ~Mask(0);

class Warp;
struct Instruction;
/// Executes |instruction| for the lanes of |mask|, which is never 0.
using Run = void (*)(Warp &warp, const Instruction &instruction, Mask mask);

/// Where execution continues after an instruction.
enum class Flow : uint8_t { Next, Branch, BranchTable, Exit, Barrier };

/// The category under which an instruction is counted.
enum class Kind : uint8_t {
  Integer,
  Float,
  Convert,
  Move,
  Control,
  GlobalLoad,
  GlobalStore,
  SharedLoad,
  SharedStore,
  LocalMemory,
  ParameterLoad,
  Atomic,
  AsyncCopy,
  Warp,
  Tensor,
  Barrier,
  Count
};

struct Instruction {
  Run run = nullptr;
  Run inner = nullptr; ///< the function that a wrapper (rounding, saturation) wraps
  Flow flow = Flow::Next;
  Kind kind = Kind::Integer;
  bool guardNegated = false;
  uint32_t guard = kNone; ///< predicate
  uint32_t to = kNone, a = kNone, b = kNone, c = kNone;
  std::array<uint32_t, 16> more{}; ///< further operands of mma, vectors and shuffles
  int64_t immediate = 0;           ///< address offset, or specific to the instruction
  uint32_t target = 0;             ///< target of branches
  uint32_t flags = 0;              ///< specific to the instruction
  // Memory and conversions.
  Space space = Space::Generic;
  uint8_t elementBytes = 0, elements = 1, registerBytes = 0, addressBytes = 8;
  bool isSigned = false;
};

enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Lane,
  WarpIndex,
  Warps,
  Eq,
  Le,
  Lt,
  Ge,
  Gt,
  Smid,
  Nsmid,
  GridId,
  DynamicShared,
  TotalShared,
  Zero
};

struct SpecialUse {
  Special which;
  uint32_t offset;
};

struct Parameter {
  uint32_t offset = 0, bytes = 0;
};

struct Source {
  unsigned line = 0;
  std::string text;
};

/// A global variable of a loaded module: its device address and size.
struct GlobalSymbol {
  uint64_t address = 0;
  uint64_t bytes = 0;
};
using GlobalSymbols = std::unordered_map<std::string, GlobalSymbol>;

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<Source> sources; ///< source text of each instruction
  std::vector<uint8_t> file;   ///< initial register file of a warp: constants, otherwise poison
  uint32_t registers = 0;      ///< 32-bit registers per thread, before register allocation
  std::vector<SpecialUse> specials;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0; ///< static shared memory; dynamic shared memory follows at a multiple of 16
  uint32_t localBytes = 0;  ///< local memory per thread
  unsigned maxThreads = 0;
  bool hasFixedThreads = false;
  std::vector<std::vector<uint32_t>> branchTables;
};

/// Windows of the generic address space. Device memory is host memory, which is below 2^47; the other spaces have
/// windows.
constexpr uint64_t kSharedWindow = uint64_t(1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(2) << 56;
constexpr uint64_t kParameterWindow = uint64_t(3) << 56;
constexpr uint64_t kWindowMask = ~((uint64_t(1) << 56) - 1);

/// Decodes |function|. Throws LoadError if it uses anything that the machine does not support.
Kernel decode(const Module &module, const Function &function, const GlobalSymbols &symbols);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PROGRAM_H
