# SPDX-License-Identifier: Apache-2.0
"""The cheapest mixed precision that meets a target: sensitivity and scores measured on the compiled quantised model."""
