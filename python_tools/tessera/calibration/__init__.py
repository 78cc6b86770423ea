# SPDX-License-Identifier: Apache-2.0
"""Calibration: ranges of activations from sample data, thresholds for int8, and the table that stores them."""
