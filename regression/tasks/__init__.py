# SPDX-License-Identifier: Apache-2.0
"""Scores of real tasks (top-1, mAP, greedy text) for anything that maps input arrays to output arrays."""
