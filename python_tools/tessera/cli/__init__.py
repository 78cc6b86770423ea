# SPDX-License-Identifier: Apache-2.0
"""The commands; each module has a `main()` that a console script calls."""
