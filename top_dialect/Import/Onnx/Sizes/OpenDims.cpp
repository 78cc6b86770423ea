//===- OpenDims.cpp - Open dims of inputs become symbols ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/OpenDims.h"

#include "top_dialect/Import/Onnx/Model/ImportError.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top::onnx_import {

std::string dimName(const Input &input, size_t axis) {
  return input.dimNames[axis].empty() ? llvm::formatv("{0}.{1}", input.name, axis).str() : input.dimNames[axis];
}

namespace {

class DimOpener {
public:
  DimOpener(llvm::MutableArrayRef<Input> inputs, const DimRanges &ranges, mlir::MLIRContext *context,
            const std::function<void(StringRef, const DimRange &)> &opened, std::map<std::string, DimRange> &missing,
            llvm::StringMap<std::string> &unknown)
      : inputs(inputs), ranges(ranges), context(context), opened(opened), missing(missing), unknown(unknown) {}

  llvm::Error run() {
    for (Input &input : inputs) {
      input.sizes.assign(input.shape.begin(), input.shape.end());
    }
    openNames();
    if (llvm::Error error = checkNames()) {
      return error;
    }
    llvm::SmallVector<std::string> proposals;
    for (Input &input : inputs) {
      for (size_t axis = 0; axis < input.shape.size(); ++axis) {
        std::optional<Dim> size = isOpen(input, axis) ? sizeOf(dimName(input, axis)) : Dim(input.shape[axis]);
        if (size) {
          setSize(input, axis, *size);
        } else if (missing.emplace(dimName(input, axis), defaultRange(input, axis)).second) {
          proposals.push_back(propose(input, axis));
        }
      }
    }
    if (!proposals.empty() && !unknown.empty()) {
      missing.clear();
      return fail(unknown.begin()->second); // probably a wrong name of one of them
    }
    if (!proposals.empty()) {
      return fail(llvm::formatv("dims are open without a range: add them to --dims, with the ranges you need: {0}",
                                llvm::join(proposals, ",")));
    }
    for (const auto &[name, range] : used) {
      opened ? opened(name, range) : void();
    }
    return llvm::Error::success();
  }

private:
  static bool isOpen(const Input &input, size_t axis) {
    return mlir::ShapedType::isDynamic(input.shape[axis]) && !input.value;
  }

  static void setSize(Input &input, size_t axis, Dim size) {
    input.sizes[axis] = size;
    input.shape[axis] = size.isKnown() ? size.value() : mlir::ShapedType::kDynamic;
  }

  /// Returns "NAME=RANGE" with the default range of a dim.
  static std::string propose(const Input &input, size_t axis) {
    return llvm::formatv("{0}={1}", dimName(input, axis), defaultRange(input, axis).format());
  }

  /// Declares the sizes of all names that are not sums.
  void openNames() {
    for (const Input &input : inputs) {
      for (size_t axis = 0; axis < input.shape.size(); ++axis) {
        std::string name = dimName(input, axis);
        if (!isOpen(input, axis) || sizes.contains(name)) {
          continue;
        }
        auto given = ranges.byName.find(name);
        bool isSum = StringRef(name).contains('+');
        if (given == ranges.byName.end() && (!ranges.openAll || isSum)) {
          continue;
        }
        DimRange range = given != ranges.byName.end() ? given->second : defaultRange(input, axis);
        used.emplace_back(name, range);
        sizes.try_emplace(name, declare(name, range));
      }
    }
  }

  bool isDimName(StringRef name) const {
    return llvm::any_of(inputs, [&](const Input &input) {
      return llvm::any_of(llvm::seq<size_t>(0, input.shape.size()),
                          [&](size_t axis) { return dimName(input, axis) == name; });
    });
  }

  Dim declare(StringRef name, const DimRange &range) {
    int64_t divisor = std::max<int64_t>(range.divisor, 1);
    // A symbol of this form is the size divided by the divisor: see toText().
    std::string symbol = divisor > 1 ? llvm::formatv("{0}/{1}", name, divisor).str() : name.str();
    while (divisor > 1 && isDimName(symbol)) {
      symbol += "'";
    }
    return Dim(divisor) *
           Dim::symbol(context, symbol, range.min / divisor, range.max / divisor, range.likely / divisor);
  }

  std::optional<Dim> sizeOf(StringRef name) {
    if (auto it = sizes.find(name); it != sizes.end()) {
      return it->second;
    }
    auto [head, tail] = name.split('+');
    if (int64_t number = 0; !name.contains('+') && !name.trim().getAsInteger(10, number)) {
      return Dim(number);
    }
    if (!name.contains('+')) {
      auto it = sizes.find(name.trim());
      return it == sizes.end() ? std::nullopt : std::optional(it->second);
    }
    std::optional<Dim> first = sizeOf(head), rest = sizeOf(tail);
    return first && rest ? std::optional(*first + *rest) : std::nullopt;
  }

  /// Returns the error for a |name| of a dim that is fixed, or that the file calls otherwise.
  static llvm::Error rejectName(StringRef name, const Input &input, size_t axis) {
    if (isOpen(input, axis)) {
      return fail(llvm::formatv("--dims names '{0}', but the file calls this dim '{1}': use that name", name,
                                dimName(input, axis)));
    }
    return fail(llvm::formatv("--dims names '{0}', but dim {1} of input '{2}' is fixed to {3}", name, axis, input.name,
                              input.shape[axis]));
  }

  /// Checks that no name given by the user is that of a fixed dim, and collects the names of no dim.
  llvm::Error checkNames() {
    for (const auto &[name, range] : ranges.byName) {
      if (sizes.contains(name)) {
        continue;
      }
      std::string open;
      for (const Input &input : inputs) {
        for (size_t axis = 0; axis < input.shape.size(); ++axis) {
          if (dimName(input, axis) == name || llvm::formatv("{0}.{1}", input.name, axis).str() == name) {
            return rejectName(name, input, axis);
          }
          if (isOpen(input, axis)) {
            open += (open.empty() ? "" : ",") + propose(input, axis);
          }
        }
      }
      unknown[name] =
          llvm::formatv("--dims names '{0}', which is not the name of an open dim; {1}{2}", name,
                        open.empty() ? "no dim is open" : "the open ones are, with usual ranges: --dims ", open);
    }
    return llvm::Error::success();
  }

  llvm::MutableArrayRef<Input> inputs;
  const DimRanges &ranges;
  mlir::MLIRContext *context;
  const std::function<void(StringRef, const DimRange &)> &opened;
  std::map<std::string, DimRange> &missing;
  llvm::StringMap<std::string> &unknown;
  std::vector<std::pair<std::string, DimRange>> used; ///< the opened names
  llvm::StringMap<Dim> sizes;                         ///< of the names that are no sums
};

} // namespace

llvm::Error declareDims(llvm::MutableArrayRef<Input> inputs, const DimRanges &ranges, mlir::MLIRContext *context,
                        const std::function<void(StringRef, const DimRange &)> &opened,
                        std::map<std::string, DimRange> &missing, llvm::StringMap<std::string> &unknown) {
  return DimOpener(inputs, ranges, context, opened, missing, unknown).run();
}

} // namespace tessera::top::onnx_import
