//===- Target.h - What a family of chips provides ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The compiler's side of a family: everything outside codegen/<Family> sees its chips through this interface, and
// finds them through Registry.h. docs/adding-a-target.md is the recipe.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TARGET_TARGET_H
#define TESSERA_CODEGEN_TARGET_TARGET_H

#include "codegen/Target/Phases.h"
#include "codegen/Target/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::codegen {
/// An op that a chip cannot run, and the constraint that failed, with actual and allowed value; null: the function as a
/// whole.
struct Refusal {
  mlir::Operation *op;
  std::string reason;
};

/// A part of the model for one target: a function of its own whose arguments and results lie in memory of the target.
struct Subnet {
  std::string name;
  mlir::func::FuncOp function; ///< of a module of its own, which compile() may change
  bool isWhole = false;        ///< it is all of the model, and the chip is the model's
};

/// What the user asks of a compilation. Every family reads what concerns it.
struct CompileOptions {
  unsigned opt = 2; ///< effort, 0 to 3
  std::string plan; ///< file of decisions to be followed, as Program::report tells them; empty: none
  std::optional<std::string> cacheFolder; ///< of compiled kernels; empty: none; not set: the family's own
  unsigned candidates =
      0; ///< of each decision that the plan tells and that can be measured, so many that could be taken
  bool isMeasured = false; ///< |plan| was measured on this machine's device: the cache keeps its decisions
  bool tf32 = false;       ///< products of f32 may round their factors to tf32, which the chip multiplies faster
  bool observe = false;    ///< every Top result stays in memory of its own, which no later step overwrites
  bool layers = false;     ///< the report tells of every layer
  /// What every step of an accelerator makes leaves the chip for memory of its own, and is a tensor of the file; the
  /// steps are those of the model without. The report lists them as "kept".
  bool keepLayers = false;
  IrObserver observeIr; ///< is shown the IR behind every phase
};

/// The user asks a chip for what there is not: a mistake in the command, not in the model.
class UsageError : public llvm::ErrorInfo<UsageError> {
public:
  static char ID;
  explicit UsageError(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

/// What a search for precisions compares types by; only ratios matter.
struct Rates {
  /// Multiply-adds a nanosecond, by quant::Precision's name of the activations; one that is not there runs as F32 does.
  /// "WINOGRAD", where it is there, is the rate of f32's 3x3 convolutions.
  std::vector<std::pair<llvm::StringRef, double>> products = {{"F32", 1}};
  double bytes = 1; ///< of memory traffic a nanosecond
};

class Target {
public:
  virtual ~Target() = default;

  /// As in Registry.h and in ChipDef.family.
  virtual llvm::StringRef family() const = 0;
  /// Name, family, description, fingerprint and memory, as they stand in the file. The tensors of its subnets lie in
  /// that memory: the host's, or its own, to and from which the planner copies what passes between subnets.
  virtual bmodel::ChipDefT describe() const = 0;
  std::string name() const { return describe().name; }

  /// Whether it runs every device op, so that it needs no other target behind it.
  virtual bool runsEverything() const { return false; }
  /// Whether this machine can run its programs, itself or by a simulator.
  virtual bool runsHere() const { return false; }
  /// Whether Top results can be kept (CompileOptions::observe).
  virtual bool canObserve() const { return false; }
  /// Whether its decisions can be measured by running programs (CompileOptions::candidates).
  virtual bool canTune() const { return false; }
  /// Whether products of f32 may have factors of tf32 (CompileOptions::tf32).
  virtual bool canRoundToTf32() const { return false; }
  /// How integer sums become integers of few bits: the modes of numerics.h the chip has, the preferred one first.
  virtual std::vector<std::string> requantisations() const { return {"float"}; }

  /// Error where the options do not suit the chip, before anything is done: a UsageError where it knows no such thing.
  virtual llvm::Error check(const CompileOptions &options) const;

  /// Appends the chip's own forms of fused device ops to passes on functions, before anyone is asked about ops.
  virtual void addForms(mlir::OpPassManager &) const {}
  /// Operands that a map may have on the chip; none: any number.
  virtual std::optional<unsigned> mostMapOperands() const { return std::nullopt; }

  /// Every op of the function that the chip cannot run, as far as that is known before it is compiled: asked of the
  /// same code that emits. The function is a copy, which may be changed; ops of the result are those it had, or ones
  /// that a pass put before them.
  virtual std::vector<Refusal> survey(mlir::func::FuncOp function) const = 0;
  /// Seconds that the op takes as a part of a subnet, roughly: it decides where ops run.
  virtual double secondsOf(mlir::Operation *op) const = 0;
  /// Seconds that a value costs the target which another target reads or has made.
  virtual double transferSeconds(int64_t bytes) const = 0;
  /// Seconds that it costs to begin a subnet behind one of another target, or the other way round.
  virtual double handOverSeconds() const = 0;

  /// Of one core or of the whole accelerator, as a roofline has them.
  virtual Rates rates() const { return {}; }

  /// Appends the way from shared device ops to what compile() emits: layouts, packing, addresses, decisions. On
  /// modules.
  virtual void buildPasses(mlir::OpPassManager &manager, const CompileOptions &options) const = 0;

  /// The program of these subnets, on which buildPasses' passes have run. Where the chip cannot run an op after all,
  /// nothing, and |refusals| tells; else an error, or diagnostics at the ops and an error that names the phase.
  virtual llvm::Expected<std::optional<Program>> compile(llvm::ArrayRef<Subnet> subnets, const CompileOptions &options,
                                                         const PhaseObserver &observer,
                                                         std::vector<Refusal> &refusals) const = 0;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_TARGET_H
