//===- PlanGroups.h - Ops that run slice by slice ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Values too large to stay whole can still stay in part: a group of ops runs for some rows after the other, each op
// making what those behind it need next. Rows that are needed again move to the buffer of the next slice.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_PLANGROUPS_H
#define TESSERA_CODEGEN_NPU_PLANGROUPS_H

#include "codegen/Npu/LayerSchedule.h"
#include "codegen/Npu/PlanValues.h"

namespace tessera::npu {

struct RowRange {
  uint32_t begin = 0, end = 0;

  uint32_t size() const { return end - begin; }
  bool isEmpty() const { return begin >= end; }
};

/// The rows, of |size|, that windows over rows |y| of a result see: at least one.
RowRange rowsOfWindows(RowRange y, uint32_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad);

/// What an op does in one slice.
struct SlicePart {
  RowRange computes; ///< rows of its result
  RowRange holds;    ///< rows of it that the slice needs in local memory
};

struct SliceGroup {
  uint32_t first = 0, last = 0; ///< ops, by number
  uint32_t slices = 0;
  std::vector<unsigned> aliasSets = {};           ///< of values that stay slice by slice
  std::vector<std::vector<SlicePart>> parts = {}; ///< by slice, then op

  bool holds(unsigned aliasSet) const { return llvm::is_contained(aliasSets, aliasSet); }
};

class GroupPlan {
public:
  /// Chooses groups among the ops of a plan that has chosen what stays whole: apart from each other, together sparing
  /// most time. |parts|: values that several ops make may stay slice by slice, too.
  GroupPlan(const ValuePlan &plan, const Chip &chip, bool parts = true);
  /// These groups, as far as they can run so and fit.
  GroupPlan(const ValuePlan &plan, const Chip &chip, llvm::ArrayRef<LayerSchedule::Group> groups);

  /// The groups of another plan of the same values.
  GroupPlan(const ValuePlan &plan, const GroupPlan &other)
      : plan(plan), chip(other.chip), parts(other.parts), chosen(other.chosen) {}
  /// No groups: before add().
  static GroupPlan none(const ValuePlan &plan, const Chip &chip) {
    return GroupPlan(plan, chip, llvm::ArrayRef<LayerSchedule::Group>());
  }
  /// A group whose slices are known, and finds its alias sets; false where its layers cannot run slice by slice.
  bool add(SliceGroup group);

  const std::vector<SliceGroup> &groups() const { return chosen; }
  /// The group that begins with an op; null: none.
  const SliceGroup *at(uint32_t op) const;
  /// More slices for the groups that some of the ops are in, or no such group where more do not help; false where
  /// there are none.
  bool refine(const std::set<uint32_t> &ops);

  /// Whether a value that several ops make stays slice by slice.
  bool hasParts() const;

  /// Gives up groups that counted on values to stay whole which no longer do.
  void recheck();

private:
  bool canSlice(uint32_t op) const;
  bool findAliasSets(SliceGroup &group) const;
  bool isWritten(const SliceGroup &group, unsigned aliasSet, uint32_t op) const;
  void findParts(SliceGroup &group, uint32_t slices) const;
  uint64_t temporariesOf(uint32_t op) const;
  uint64_t bytesOf(const SliceGroup &group) const;
  double sparedBy(const SliceGroup &group) const;
  bool fits(SliceGroup &group, uint32_t least) const;
  uint32_t rowsOf(uint32_t op) const;

  const ValuePlan &plan;
  const Chip &chip;
  bool parts = true;
  std::vector<SliceGroup> chosen;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PLANGROUPS_H
