//===- Registry.cpp - The registered families -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/Registry.h"

#include "top_dialect/IR/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

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

/// Returns the family of a built-in chip, or null if no family has it.
static const Family *familyOf(llvm::StringRef chip) {
  for (const Family *family : families()) {
    if (llvm::is_contained(family->chips(), chip)) {
      return family;
    }
  }
  return nullptr;
}

/// Returns the family that a description names. For an unreadable description returns the first family that takes
/// descriptions, which reports the error.
static llvm::Expected<const Family *> describedFamily(const ChipRequest &request) {
  std::vector<const Family *> described;
  llvm::copy_if(families(), std::back_inserter(described), [](const Family *each) { return each->hasDescriptions; });
  llvm::Expected<llvm::json::Value> json = top::parseJson(request.description);
  std::optional<llvm::StringRef> named;
  if (!json) {
    llvm::consumeError(json.takeError());
  } else if (const llvm::json::Object *object = json->getAsObject()) {
    named = object->getString("family");
  }
  if (!named) {
    return described.front();
  }
  auto found = llvm::find_if(described, [&](const Family *each) { return each->name == *named; });
  if (found != described.end()) {
    return *found;
  }
  std::vector<llvm::StringRef> names;
  llvm::transform(described, std::back_inserter(names), [](const Family *each) { return each->name; });
  return llvm::createStringError(request.name + ": family is \"" + named->str() + "\", allowed are " +
                                 llvm::join(names, ", "));
}

llvm::Expected<std::unique_ptr<Target>> createTarget(const ChipRequest &request) {
  if (!request.description.empty()) {
    llvm::Expected<const Family *> family = describedFamily(request);
    return family ? (*family)->create(request) : family.takeError();
  }
  const Family *family = familyOf(request.name);
  if (!family) {
    return llvm::make_error<UsageError>("unknown chip '" + request.name + "': allowed are " +
                                        llvm::join(knownChips(), ", ") + " and the path of a chip description (.json)");
  }
  if (!request.fields.empty() && !llvm::is_contained(family->flags, "chip_set")) {
    return llvm::make_error<UsageError>("--chip-set changes a chip description, and '" + request.name +
                                        "' does not have one");
  }
  return family->create(request);
}

void registerFamilies(mlir::DialectRegistry &registry) {
  for (const Family *family : families()) {
    family->registerDialects(registry);
  }
}

} // namespace tessera::codegen
