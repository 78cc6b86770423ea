//===- PlanFile.cpp - A schedule by layer, as JSON ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/PlanFile.h"

#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/RegularFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tessera::npu {
namespace {

llvm::Error wrong(const llvm::Twine &what) { return llvm::createStringError(what); }

/// A list of a plan: objects with known keys.
class List {
public:
  List(const llvm::json::Object &plan, llvm::StringRef name, LayerSchedule &layerSchedule)
      : plan(plan), name(name), layerSchedule(layerSchedule) {}

  llvm::Error read(llvm::ArrayRef<llvm::StringRef> numbers, llvm::ArrayRef<llvm::StringRef> ignoredKeys,
                   llvm::function_ref<void(llvm::ArrayRef<uint32_t>)> add) {
    const llvm::json::Value *value = plan.get(name);
    const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
    if (value && !array) {
      return wrong("'" + name + "' is not a list");
    }
    for (size_t i = 0; array && i < array->size(); ++i) {
      std::string where = ("'" + name + "', entry " + llvm::Twine(i)).str();
      const llvm::json::Object *entry = (*array)[i].getAsObject();
      if (!entry) {
        return wrong(where + ": is not an object");
      }
      if (llvm::Error error = readEntry(*entry, where, numbers, ignoredKeys, add)) {
        return error;
      }
    }
    return llvm::Error::success();
  }

private:
  llvm::Error readEntry(const llvm::json::Object &entry, const std::string &where,
                        llvm::ArrayRef<llvm::StringRef> numbers, llvm::ArrayRef<llvm::StringRef> ignoredKeys,
                        llvm::function_ref<void(llvm::ArrayRef<uint32_t>)> add) {
    for (const auto &each : entry) {
      llvm::StringRef key = each.first;
      if (!llvm::is_contained(numbers, key) && !llvm::is_contained(ignoredKeys, key)) {
        return wrong(where + ": unknown key '" + key + "'");
      }
    }
    llvm::SmallVector<uint32_t> values;
    for (llvm::StringRef key : numbers) {
      std::optional<int64_t> value = entry.getInteger(key);
      if (!value || *value < 0 || *value > INT32_MAX) {
        return wrong(where + ": '" + key + "' must be a whole number from 0 to 2147483647");
      }
      values.push_back(uint32_t(*value));
    }
    if (values[1] < values[0]) {
      return wrong(where + ": 'last' is before 'first'");
    }
    for (auto [key, layer] : {std::pair("from", values[0]), std::pair("to", values[1])}) {
      if (std::optional<llvm::StringRef> text = entry.getString(key)) {
        layerSchedule.names[layer] = text->str();
      }
    }
    add(values);
    return llvm::Error::success();
  }

  const llvm::json::Object &plan;
  llvm::StringRef name;
  LayerSchedule &layerSchedule;
};

llvm::Error read(const llvm::json::Object &plan, LayerSchedule &layerSchedule) {
  for (const auto &each : plan) {
    if (each.first != "whole" && each.first != "groups") {
      return wrong("unknown key '" + llvm::StringRef(each.first) + "'");
    }
  }
  if (llvm::Error error = List(plan, "whole", layerSchedule)
                              .read({"first", "last"}, {"from", "to", "bytes_per_lane", "stored"},
                                    [&](llvm::ArrayRef<uint32_t> numbers) {
                                      layerSchedule.whole.push_back({numbers[0], numbers[1]});
                                    })) {
    return error;
  }
  return List(plan, "groups", layerSchedule)
      .read({"first", "last", "slices"}, {"from", "to"}, [&](llvm::ArrayRef<uint32_t> numbers) {
        layerSchedule.groups.push_back({numbers[0], numbers[1], numbers[2]});
      });
}

} // namespace

llvm::json::Object describePlan(const LayerSchedule &plan) {
  auto range = [&](uint32_t first, uint32_t last) {
    return llvm::json::Object{{"first", int64_t(first)},
                              {"last", int64_t(last)},
                              {"from", llvm::json::fixUTF8(plan.names.at(first))},
                              {"to", llvm::json::fixUTF8(plan.names.at(last))}};
  };
  llvm::json::Array whole, groups;
  for (const LayerSchedule::ResidentValue &stay : plan.whole) {
    llvm::json::Object entry = range(stay.first, stay.last);
    entry["bytes_per_lane"] = int64_t(stay.bytes), entry["stored"] = stay.stored;
    whole.push_back(std::move(entry));
  }
  for (const LayerSchedule::Group &group : plan.groups) {
    llvm::json::Object entry = range(group.first, group.last);
    entry["slices"] = int64_t(group.slices);
    groups.push_back(std::move(entry));
  }
  return llvm::json::Object{{"whole", std::move(whole)}, {"groups", std::move(groups)}};
}

llvm::Expected<LayerSchedule> readPlan(llvm::StringRef path) {
  auto file = top::readRegularFile(path);
  if (!file) {
    return wrong("cannot read the plan '" + path + "': " + llvm::toString(file.takeError()));
  }
  return parsePlan((*file)->getBuffer(), path);
}

llvm::Expected<LayerSchedule> parsePlan(llvm::StringRef text, llvm::StringRef where) {
  llvm::Expected<llvm::json::Value> json = top::parseJson(text);
  if (!json) {
    return wrong("the plan '" + where + "' is not valid JSON: " + llvm::toString(json.takeError()));
  }
  LayerSchedule layerSchedule;
  llvm::Error error = json->getAsObject() ? read(*json->getAsObject(), layerSchedule)
                                          : wrong("is not an object with 'whole' and 'groups'");
  if (error) {
    return wrong("the plan '" + where + "': " + llvm::toString(std::move(error)));
  }
  return layerSchedule;
}

} // namespace tessera::npu
