//===- Registry.cpp - The families that there are -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/Registry.h"

#include "llvm/ADT/StringExtras.h"

#define TESSERA_FAMILY(NAMESPACE)                                                                                      \
  namespace tessera::NAMESPACE {                                                                                       \
  extern const codegen::Family kFamily;                                                                                \
  }
#include "Families.def"
#undef TESSERA_FAMILY

namespace tessera::codegen {

llvm::ArrayRef<const Family *> families() {
  static const Family *const known[] = {
#define TESSERA_FAMILY(NAMESPACE) &NAMESPACE::kFamily,
#include "Families.def"
#undef TESSERA_FAMILY
  };
  return known;
}

std::string defaultHost() {
  const auto *host = llvm::find_if(families(), [](const Family *family) { return family->isHost; });
  return host == families().end() ? std::string() : (*host)->name.str();
}

std::vector<std::string> knownChips() {
  std::vector<std::string> names;
  for (const Family *family : families()) {
    llvm::append_range(names, family->chips());
  }
  return names;
}

/// The family of a built-in chip; null: none has it.
static const Family *familyOf(llvm::StringRef chip) {
  for (const Family *family : families()) {
    if (llvm::is_contained(family->chips(), chip)) {
      return family;
    }
  }
  return nullptr;
}

llvm::Expected<std::unique_ptr<Target>> createTarget(const ChipRequest &request) {
  if (!request.description.empty()) {
    for (const Family *family : families()) {
      llvm::Expected<std::unique_ptr<Target>> made =
          family->hasDescriptions ? family->create(request) : std::unique_ptr<Target>();
      if (!made || *made) {
        return made;
      }
    }
    return llvm::createStringError("'" + request.name + "' describes a chip of a family that there is not");
  }
  const Family *family = familyOf(request.name);
  if (!family) {
    return llvm::make_error<UsageError>("unknown chip '" + request.name + "': allowed are " +
                                        llvm::join(knownChips(), ", ") + " and the path of a description, .json");
  }
  if (!request.fields.empty() && !family->hasDescriptions) {
    return llvm::make_error<UsageError>("--chip-set changes the description of a chip: '" + request.name +
                                        "' has none");
  }
  return family->create(request);
}

void registerFamilies(mlir::DialectRegistry &registry) {
  for (const Family *family : families()) {
    family->registerDialects(registry);
  }
}

} // namespace tessera::codegen
