# SPDX-License-Identifier: Apache-2.0
# For mypy: the compiled module's names (quant/Calibration/PythonModule.cpp).
from typing import Any

SHIFT: int

def __getattr__(name: str) -> Any: ...
