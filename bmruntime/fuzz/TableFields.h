// SPDX-License-Identifier: Apache-2.0
//===- TableFields.h - Lists every field of a flatbuffer ------------------===//
#ifndef TESSERA_BMRUNTIME_FUZZ_TABLEFIELDS_H
#define TESSERA_BMRUNTIME_FUZZ_TABLEFIELDS_H

#include <cstdint>
#include <flatbuffers/reflection_generated.h>
#include <map>
#include <string>
#include <vector>

namespace bmrt::fuzz {

/// A position in the buffer that can be altered.
struct Spot {
  enum Kind : uint8_t { Scalar, Length, Reference };
  Kind kind;
  uint8_t bytes;
  size_t offset; ///< from the start of the buffer
};

/// All positions of a flatbuffer, grouped by field, e.g. "LaunchDef.args[]", so that a field that occurs once is
/// altered as often as a field that occurs thousands of times.
class TableFields {
public:
  /// |schema| is flatc's binary schema, |buffer| a well-formed buffer of its root type.
  TableFields(const std::string &schema, const std::vector<uint8_t> &buffer) : data(buffer.data()) {
    types = reflection::GetSchema(schema.data());
    const auto root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(data);
    addTable(*types->root_table(), root);
  }

  std::map<std::string, std::vector<Spot>> spots;

private:
  using BaseType = reflection::BaseType;

  void add(const std::string &name, Spot::Kind kind, size_t bytes, size_t offset) {
    spots[name].push_back({kind, uint8_t(bytes), offset});
  }

  static size_t sizeOf(BaseType type) {
    switch (type) {
    case BaseType::UType:
    case BaseType::Bool:
    case BaseType::Byte:
    case BaseType::UByte:
      return 1;
    case BaseType::Short:
    case BaseType::UShort:
      return 2;
    case BaseType::Int:
    case BaseType::UInt:
    case BaseType::Float:
      return 4;
    case BaseType::Long:
    case BaseType::ULong:
    case BaseType::Double:
      return 8;
    default:
      return 0;
    }
  }

  const reflection::Object &object(int32_t index) const { return *types->objects()->Get(uint32_t(index)); }

  size_t follow(size_t at) const { return at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(data + at); }

  void addStruct(const std::string &name, const reflection::Object &type, size_t at) {
    for (const reflection::Field *field : *type.fields()) {
      add(name + "." + field->name()->str(), Spot::Scalar, sizeOf(field->type()->base_type()), at + field->offset());
    }
  }

  void addString(const std::string &name, size_t at) {
    const auto length = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(data + at);
    for (size_t i = 0; i < length && i < 4096; ++i) {
      add(name + "\"", Spot::Scalar, 1, at + 4 + i);
    }
  }

  void addVector(const std::string &name, const reflection::Type &type, size_t at) {
    add(name + "#", Spot::Length, 4, at);
    const auto length = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(data + at);
    const BaseType element = type.element();
    for (size_t i = 0; i < length; ++i) {
      if (element == BaseType::Obj && object(type.index()).is_struct()) {
        addStruct(name + "[]", object(type.index()), at + 4 + i * size_t(object(type.index()).bytesize()));
      } else if (element == BaseType::Obj) {
        add(name + "@", Spot::Reference, 4, at + 4 + 4 * i);
        addTable(object(type.index()), follow(at + 4 + 4 * i));
      } else if (element == BaseType::String) {
        addString(name, follow(at + 4 + 4 * i));
      } else {
        add(name + "[]", Spot::Scalar, sizeOf(element), at + 4 + i * sizeOf(element));
      }
    }
  }

  void addTable(const reflection::Object &type, size_t at) {
    const size_t vtable = at - size_t(flatbuffers::ReadScalar<flatbuffers::soffset_t>(data + at));
    const auto slots = flatbuffers::ReadScalar<flatbuffers::voffset_t>(data + vtable);
    auto find = [&](uint16_t slot) {
      const size_t inside =
          slot < slots ? flatbuffers::ReadScalar<flatbuffers::voffset_t>(data + vtable + slot) : size_t(0);
      return inside ? at + inside : size_t(0);
    };
    for (const reflection::Field *field : *type.fields()) {
      const size_t place = find(field->offset());
      if (!place) {
        continue;
      }
      const std::string name = type.name()->str() + "." + field->name()->str();
      switch (field->type()->base_type()) {
      case BaseType::Obj:
        if (object(field->type()->index()).is_struct()) {
          addStruct(name, object(field->type()->index()), place);
        } else {
          add(name + "@", Spot::Reference, 4, place);
          addTable(object(field->type()->index()), follow(place));
        }
        break;
      case BaseType::Union: {
        const size_t kind = find(uint16_t(field->offset() - 2));
        const auto *values = types->enums()->Get(uint32_t(field->type()->index()))->values();
        const reflection::EnumVal *value = values->LookupByKey(int64_t(data[kind]));
        add(name + "@", Spot::Reference, 4, place);
        addTable(object(value->union_type()->index()), follow(place));
        break;
      }
      case BaseType::String:
        add(name + "@", Spot::Reference, 4, place);
        addString(name, follow(place));
        break;
      case BaseType::Vector:
        add(name + "@", Spot::Reference, 4, place);
        addVector(name, *field->type(), follow(place));
        break;
      default:
        add(name, Spot::Scalar, sizeOf(field->type()->base_type()), place);
      }
    }
  }

  const uint8_t *data;
  const reflection::Schema *types;
};

} // namespace bmrt::fuzz

#endif // TESSERA_BMRUNTIME_FUZZ_TABLEFIELDS_H
