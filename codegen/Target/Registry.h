//===- Registry.h - The registered families ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_REGISTRY_H
#define TESSERA_CODEGEN_TARGET_REGISTRY_H

#include "codegen/Target/Target.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tessera::codegen {

/// A chip requested by the user.
struct ChipRequest {
  std::string name;                     ///< built-in chip, or path of a description
  std::string description = {};         ///< JSON contents of the file at |name|; empty for a built-in chip
  std::vector<std::string> fields = {}; ///< e.g. "memories.ddr.gbps=8": fields of the description to change
};

/// Properties of a family. Families.def has one line for each family; nothing else names one.
struct Family {
  llvm::StringRef name;
  /// Returns the names of the built-in chips, in the order in which they are shown to users.
  std::vector<std::string> (*chips)();
  /// True if the family's chips run every device op (Target::runsEverything) and the chip with the family's name is
  /// this machine.
  bool isHost = false;
  /// True if users may describe their own chips in files. If |flags| contains chip_set, --chip-set changes built-in
  /// chips too.
  bool hasDescriptions = false;
  /// Flags of model_deploy (without dashes) that the chips of this family support, unlike the chips of some other
  /// family.
  llvm::ArrayRef<llvm::StringRef> flags = {};
  /// Creates a built-in chip or one with a description. Errors explain what is wrong with the request.
  llvm::Expected<std::unique_ptr<Target>> (*create)(const ChipRequest &request);
  /// Registers dialects, and interfaces of device ops, that its passes and compile() need.
  void (*registerDialects)(mlir::DialectRegistry &registry);
  /// Registers the passes, for tessera-opt.
  void (*registerPasses)();
};

/// Returns all families, in the order of Families.def.
llvm::ArrayRef<const Family *> families();

/// Returns the host chip if the user does not name one: this machine. The host runs the ops that the target chip does
/// not support.
std::string defaultHost();

/// Returns every built-in chip, family by family.
std::vector<std::string> knownChips();

/// Creates the requested chip in the family that has it. Returns a UsageError if no family knows the name or the chip
/// does not have the fields.
llvm::Expected<std::unique_ptr<Target>> createTarget(const ChipRequest &request);

/// Registers the dialects of all families.
void registerFamilies(mlir::DialectRegistry &registry);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_REGISTRY_H
