//===- OnnxNames.cpp - Normalisation of names that are not valid text -----===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/OnnxNames.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

constexpr size_t kMaxName = 16384;

bool isFine(StringRef text) { return text.size() <= kMaxName && !text.contains('\0') && llvm::json::isUTF8(text); }

/// Replaces every text in |message| and its sub-messages by the result of |change|. Fields of type bytes are unchanged.
void changeTexts(google::protobuf::Message &message, llvm::function_ref<std::string(const std::string &)> change) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection &reflection = *message.GetReflection();
  std::vector<const Field *> fields;
  reflection.ListFields(message, &fields);
  for (const Field *field : fields) {
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        changeTexts(*reflection.MutableMessage(&message, field), change);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        changeTexts(*reflection.MutableRepeatedMessage(&message, field, i), change);
      }
    } else if (field->type() == Field::TYPE_STRING) {
      std::string scratch;
      if (!field->is_repeated()) {
        const std::string &text = reflection.GetStringReference(message, field, &scratch);
        if (std::string changed = change(text); changed != text) {
          reflection.SetString(&message, field, changed);
        }
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        const std::string &text = reflection.GetRepeatedStringReference(message, field, i, &scratch);
        if (std::string changed = change(text); changed != text) {
          reflection.SetRepeatedString(&message, field, i, changed);
        }
      }
    }
  }
}

void appendHex(std::string &text, unsigned char byte) { text += "\\x" + llvm::utohexstr(byte, /*LowerCase=*/false, 2); }

std::string escape(StringRef text) {
  std::string result;
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  while (!text.empty()) {
    const auto *at = reinterpret_cast<const llvm::UTF8 *>(text.begin());
    unsigned size = llvm::getNumBytesForUTF8(*at);
    if (text[0] == '\0' || !llvm::isLegalUTF8Sequence(at, end) || size > text.size()) {
      appendHex(result, *at);
      text = text.drop_front();
    } else {
      result += text.take_front(size);
      text = text.drop_front(size);
    }
  }
  return result;
}

/// Returns the beginning and the end of a text, cut between characters.
std::string shorten(StringRef text) {
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t head = kMaxName / 2, tail = text.size() - kMaxName / 4;
  while (head > 0 && continues(text[head])) {
    --head;
  }
  while (tail < text.size() && continues(text[tail])) {
    ++tail;
  }
  return (text.take_front(head) + "..." + text.drop_front(tail)).str();
}

} // namespace

void escapeNames(onnx::ModelProto &model) {
  bool allFine = true;
  changeTexts(model, [&](const std::string &text) {
    allFine &= isFine(text);
    return text;
  });
  if (allFine) {
    return;
  }
  llvm::StringSet<> taken;
  changeTexts(model, [&](const std::string &text) {
    taken.insert(text);
    return text;
  });
  llvm::StringMap<std::string> escaped;
  changeTexts(model, [&](const std::string &text) {
    if (isFine(text)) {
      return text;
    }
    auto [it, isNew] = escaped.try_emplace(text);
    if (isNew) {
      std::string wanted = escape(text);
      wanted = wanted.size() > kMaxName ? shorten(wanted) : wanted;
      it->second = wanted;
      for (unsigned i = 2; !taken.insert(it->second).second; ++i) {
        it->second = wanted + "#" + std::to_string(i);
      }
    }
    return it->second;
  });
}

} // namespace tessera::top::onnx_import
