//===- Target.h - Interface of a family of chips ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The compiler's side of a family: everything outside codegen/<Family> accesses its chips through this interface and
// finds them through Registry.h. docs/adding-a-target.md explains how to add one.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TARGET_TARGET_H
#define TESSERA_CODEGEN_TARGET_TARGET_H

#include "codegen/Target/Phases.h"
#include "codegen/Target/TargetProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::codegen {
/// An op that a chip cannot run and the failed constraint, with actual and allowed value. |op| is null if the chip
/// rejects the function as a whole.
struct UnsupportedOp {
  mlir::Operation *op;
  std::string reason;
};

/// A part of the model for one target, as a function whose arguments and results lie in the target's memory.
struct Subnet {
  std::string name;
  mlir::func::FuncOp function; ///< in its own module, which compile() may change
  bool isWhole = false;        ///< the subnet is the whole model, on the chip that the model is compiled for
};

/// Options of a compilation. Each family reads those that concern it.
struct CompileOptions {
  unsigned opt = 2; ///< effort, 0 to 3
  std::string plan; ///< file of decisions to follow, in the form of TargetProgram::report; empty: none
  std::optional<std::string> cacheFolder; ///< cache of compiled kernels; empty: none; not set: the family's default
  unsigned candidates = 0; ///< number of alternatives to report for each decision of the plan that can be measured
  bool isMeasured = false; ///< |plan| was measured on this machine's device: the cache stores its decisions
  bool tf32 = false;       ///< f32 contractions may round their operands to TF32, which the chip multiplies faster
  bool instrument = false; ///< every Top result has its own memory, which no later step overwrites
  bool layers = false;     ///< the report lists every layer
  /// The result of every step of an accelerator is also stored to separate memory outside the chip and becomes a tensor
  /// of the file; the steps are those of the model without this option. The report lists these tensors as "kept".
  bool preserveLayers = false;
  IrObserver observeIr; ///< called with the IR after every phase
};

/// The user asked a chip for a feature that it does not have: an error in the command, not in the model.
class UsageError : public llvm::ErrorInfo<UsageError> {
public:
  static char ID;
  explicit UsageError(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

/// Throughputs by which the precision search compares types; only ratios matter.
struct MachineModel {
  /// Multiply-adds per nanosecond, by quant::Precision's name of the activations; a missing precision runs like F32.
  /// "WINOGRAD", if present, is the rate of 3x3 convolutions in f32.
  std::vector<std::pair<llvm::StringRef, double>> macs = {{"F32", 1}};
  double bytes = 1; ///< memory traffic per nanosecond
};

class Target {
public:
  virtual ~Target() = default;

  /// Name of the family, as in Registry.h and ChipDef.family.
  virtual llvm::StringRef family() const = 0;
  /// Returns name, family, description, fingerprint and memory as stored in the file. The tensors of the chip's subnets
  /// lie in that memory: the host's, or the chip's own, in which case the planner copies what passes between subnets.
  virtual bmodel::ChipDefT describe() const = 0;
  std::string name() const { return describe().name; }

  /// Returns true if the chip runs every device op and so does not need another target after it.
  virtual bool runsEverything() const { return false; }
  /// Returns true if this machine can run the chip's programs, natively or in a simulator.
  virtual bool runsHere() const { return false; }
  /// Returns true if the chip runs functions whose tensors have symbolic sizes.
  virtual bool supportsSymbolicSizes() const { return false; }
  /// Returns true if Top results can be preserved (CompileOptions::instrument).
  virtual bool canInstrument() const { return false; }
  /// Returns true if the chip's decisions can be measured by running programs (CompileOptions::candidates).
  virtual bool canTune() const { return false; }
  /// Returns true if f32 contractions may round operands to TF32 (CompileOptions::tf32).
  virtual bool canRoundToTf32() const { return false; }
  /// Returns the modes of numerics.h in which the chip converts integer sums to narrow integers, the preferred one
  /// first.
  virtual std::vector<std::string> requantisations() const { return {"float"}; }

  /// Returns an error, before anything is compiled, if the options do not suit the chip: a UsageError for features that
  /// it does not have.
  virtual llvm::Error check(const CompileOptions &options) const;

  /// Appends passes on functions that rewrite fused device ops to the chip's preferred forms, before any target is
  /// surveyed.
  virtual void addForms(mlir::OpPassManager &) const {}
  /// Returns the largest number of operands of a map on the chip; none: unlimited.
  virtual std::optional<unsigned> mostMapOperands() const { return std::nullopt; }

  /// Returns the ops of the function that the chip cannot run, by the same checks as the code that emits them.
  /// compile() may still find others. The function is a copy and may be changed. Each op in the result is an original
  /// op or one that a pass inserted before it.
  virtual std::vector<UnsupportedOp> survey(mlir::func::FuncOp function) const = 0;
  /// Returns a rough estimate of the op's time, in seconds, as part of a subnet; it decides where ops run.
  virtual double secondsOf(mlir::Operation *op) const = 0;
  /// Returns the seconds that the target spends on a value of |bytes| that another target reads or has computed.
  virtual double transferSeconds(int64_t bytes) const = 0;
  /// Returns the seconds for starting a subnet of this target after one of another target, or the other way round.
  virtual double handOverSeconds() const = 0;

  /// Returns the rates of one core or of the whole accelerator, as in a roofline model.
  virtual MachineModel machineModel() const { return {}; }

  /// Appends the passes (on modules) from shared device ops to the form that compile() emits: layouts, packing,
  /// addresses, decisions.
  virtual void buildPasses(mlir::OpPassManager &manager, const CompileOptions &options) const = 0;

  /// Compiles these subnets, on which the passes of buildPasses() have run. If the chip turns out not to support an op,
  /// returns nothing and fills |unsupportedOps|. Fails with an error, or with diagnostics at the ops and an error that
  /// names the phase.
  virtual llvm::Expected<std::optional<TargetProgram>> compile(llvm::ArrayRef<Subnet> subnets,
                                                               const CompileOptions &options,
                                                               const PhaseObserver &observer,
                                                               std::vector<UnsupportedOp> &unsupportedOps) const = 0;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_TARGET_H
