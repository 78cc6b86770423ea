// SPDX-License-Identifier: Apache-2.0
//===- ValidateText.cpp - All text of a file is UTF-8 ---------------------===//
//
// Names go into JSON, Python strings and terminals. The reader rejects other encodings once, on behalf of all users.
//
//===----------------------------------------------------------------------===//
#include "ValidateText.h"

#include "bmodel/utf8.h"

using namespace bmodel;

namespace {

class TextCheck {
public:
  /// The first field that is not UTF-8, or null.
  const char *wrong = nullptr;

  void text(const flatbuffers::String *string, const char *field) {
    for (size_t i = 0, step; string && i < string->size(); i += step) {
      if ((step = utf8SequenceAt(string->c_str() + i)) == 0) {
        wrong = field;
        return;
      }
    }
  }

  void texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *strings, const char *field) {
    each(strings, [&](const flatbuffers::String &string) { text(&string, field); });
  }

  template <typename T, typename Fn>
  void each(const flatbuffers::Vector<flatbuffers::Offset<T>> *vector, Fn visit) {
    for (uint32_t i = 0; vector && i < vector->size() && !wrong; ++i) {
      visit(*vector->Get(i));
    }
  }

  void subnet(const SubnetDef &def) {
    text(def.name(), "the name of a subnet"), text(def.isa(), "the instruction set of a subnet");
    text(def.reason(), "the reason of a subnet");
    each(def.kernels(), [&](const KernelDef &kernel) {
      text(kernel.symbol(), "the symbol of a kernel");
      if (const CustomOpDef *custom = kernel.custom()) {
        text(custom->domain(), "the domain of a custom operator"), text(custom->name(), "a custom operator");
        text(custom->attributes(), "an attribute of a custom operator");
      }
    });
    each(def.plan(), [&](const StepDef &step) {
      if (const StepDebugDef *debug = step.debug()) {
        texts(debug->onnx_nodes(), "an ONNX node of a step"), text(debug->top_op(), "the Top op of a step");
        text(debug->device_op(), "the device op of a step"), text(debug->bound(), "the bound of a step");
      }
    });
  }

  void stage(const StageDef &def) {
    text(def.name(), "the name of a stage");
    each(def.tensors(), [&](const TensorDef &tensor) {
      text(tensor.name(), "the name of a tensor"), texts(tensor.onnx_names(), "an ONNX name of a tensor");
      text(tensor.preprocess(), "the pre-processing of an input");
      text(tensor.computed_by(), "the op that computes an output");
    });
    each(def.dims(), [&](const DimSlotDef &dim) { text(dim.name(), "the name of a dim"); });
    each(def.subnets(), [&](const SubnetDef &net) { subnet(net); });
  }

  void model(const ModelDef &def) {
    text(def.name(), "the name of the model"), text(def.producer(), "the producer");
    text(def.schema_hash(), "the hash of the schema");
    each(def.chips(), [&](const ChipDef &chip) {
      text(chip.name(), "the name of a chip"), text(chip.family(), "the family of a chip");
      text(chip.description(), "the description of a chip"), text(chip.fingerprint(), "the fingerprint of a chip");
    });
    each(def.nets(), [&](const NetDef &net) {
      text(net.name(), "the name of a net");
      each(net.stages(), [&](const StageDef &result) { stage(result); });
    });
    each(def.blobs(), [&](const BlobDef &blob) { text(blob.name(), "the name of a blob"); });
    each(def.properties(), [&](const PropertyDef &property) {
      text(property.key(), "the key of a property"), text(property.value(), "the value of a property");
    });
  }
};

} // namespace

const char *bmodel::textThatIsNoUtf8(const ModelDef &model) {
  TextCheck check;
  check.model(model);
  return check.wrong;
}
