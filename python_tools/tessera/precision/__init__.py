# SPDX-License-Identifier: Apache-2.0
"""Search for the cheapest mixed precision that meets a target, by sensitivity and scores measured on the compiled
quantised model."""
