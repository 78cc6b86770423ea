//===- PlanGroups.h - Ops that run slice by slice ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Values that are too large to stay in local memory whole can still stay in part: a group of ops runs for some rows at
// a time, each op computing the rows that the following ops need next. Rows that are needed again are moved to the next
// slice's buffer.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_PLANGROUPS_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_PLANGROUPS_H

#include "codegen/Npu/Schedule/LayerSchedule.h"
#include "codegen/Npu/Schedule/PlanValues.h"

namespace tessera::npu {

/// The rows [begin, end) of a value.
struct RowRange {
  uint32_t begin = 0, end = 0;

  uint32_t size() const { return end - begin; }
  bool isEmpty() const { return begin >= end; }
};

/// Returns the rows, out of |size|, that windows for rows |y| of a result see. At least one row.
RowRange rowsOfWindows(RowRange y, uint32_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad);

/// Work of an op in one slice.
struct SlicePart {
  RowRange computes; ///< rows of its result to compute
  RowRange holds;    ///< rows of its result that the slice needs in local memory
};

/// Ops that run slice by slice, alternating with each other.
struct SliceGroup {
  uint32_t first = 0, last = 0; ///< numbers of ops
  uint32_t slices = 0;
  std::vector<unsigned> aliasSets = {};           ///< alias sets of the values that stay slice by slice
  std::vector<std::vector<SlicePart>> parts = {}; ///< by slice, then op

  bool holds(unsigned aliasSet) const { return llvm::is_contained(aliasSets, aliasSet); }
};

/// Disjoint slice groups among the ops of a ValuePlan, which must outlive the GroupPlan.
class GroupPlan {
public:
  /// Chooses disjoint groups that together save the most time, for a plan that has chosen the values that stay whole.
  /// |parts|: also allow values that several ops write to stay slice by slice.
  GroupPlan(const ValuePlan &plan, const Chip &chip, bool parts = true);
  /// Takes those of the given groups that can run slice by slice and that fit.
  GroupPlan(const ValuePlan &plan, const Chip &chip, llvm::ArrayRef<LayerSchedule::Group> groups);

  /// Copies the groups of another plan of the same values.
  GroupPlan(const ValuePlan &plan, const GroupPlan &other)
      : plan(plan), chip(other.chip), parts(other.parts), chosen(other.chosen) {}
  /// Returns a plan without groups, for use with add().
  static GroupPlan none(const ValuePlan &plan, const Chip &chip) {
    return GroupPlan(plan, chip, llvm::ArrayRef<LayerSchedule::Group>());
  }
  /// Adds a group whose slices are known, and finds its alias sets. Returns false if its layers cannot run slice by
  /// slice.
  bool add(SliceGroup group);

  const std::vector<SliceGroup> &groups() const { return chosen; }
  /// Returns the group that begins with op |op|, or null.
  const SliceGroup *at(uint32_t op) const;
  /// Increases the number of slices of all groups that contain one of the ops, or removes such a group if more slices
  /// do not help. Returns false if there are no such groups.
  bool refine(const std::set<uint32_t> &ops);

  /// Returns true if a value that several ops write stays slice by slice.
  bool hasParts() const;

  /// Removes groups that depend on values which no longer stay whole.
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

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_PLANGROUPS_H
