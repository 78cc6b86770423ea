# SPDX-License-Identifier: Apache-2.0
"""Tessera: compile trained networks into .bmodel files and run them.

`tessera.runtime` runs a .bmodel; the commands are in `tessera.cli`.
"""
__version__ = "0.1.0"
