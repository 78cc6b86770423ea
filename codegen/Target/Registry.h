//===- Registry.h - The families that there are -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_REGISTRY_H
#define TESSERA_CODEGEN_TARGET_REGISTRY_H

#include "codegen/Target/Target.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tessera::codegen {

/// A chip that the user asks for.
struct ChipRequest {
  std::string name;                     ///< a built-in one, or the path of a description
  std::string description = {};         ///< JSON of the file at |name|; empty: a built-in chip is meant
  std::vector<std::string> fields = {}; ///< "memories.ddr.gbps=8": fields of the description that are changed
};

/// What a family brings besides its chips. Families.def has one line for each; nothing else names one.
struct Family {
  llvm::StringRef name;
  /// Names of the built-in chips, in the order in which users are told of them.
  std::vector<std::string> (*chips)();
  /// Whether its chips run every device op (Target::runsEverything), and the one of the family's own name is this
  /// machine.
  bool isHost;
  /// Whether users may describe chips of their own in files. Where |flags| has chip_set, --chip-set changes built-in
  /// chips too.
  bool hasDescriptions;
  /// Flags of model_deploy (without dashes) that its chips understand and those of other families need not.
  llvm::ArrayRef<llvm::StringRef> flags;
  /// The chip of one of these names, or of a description. Errors tell what is wrong with it.
  llvm::Expected<std::unique_ptr<Target>> (*create)(const ChipRequest &request);
  /// Dialects, and interfaces of device ops, that its passes and compile() need.
  void (*registerDialects)(mlir::DialectRegistry &registry);
  /// The passes, for tessera-opt.
  void (*registerPasses)();
};

/// All families, in the order of Families.def.
llvm::ArrayRef<const Family *> families();

/// The chip that runs what others cannot, if the user names none: this machine's.
std::string defaultHost();

/// Every built-in chip, family by family.
std::vector<std::string> knownChips();

/// The chip of that name or description, found in whatever family has it. A UsageError where no family knows the name,
/// or it has no such fields.
llvm::Expected<std::unique_ptr<Target>> createTarget(const ChipRequest &request);

/// Dialects of all families.
void registerFamilies(mlir::DialectRegistry &registry);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_REGISTRY_H
