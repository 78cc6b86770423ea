# SPDX-License-Identifier: Apache-2.0
"""Exit codes of all commands, and the exception that carries a message to the user."""
from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the commands; docs/exit-codes.md is the user's page."""

    OK = 0
    ERROR = 1  # the model, a file or the data is at fault
    USAGE = 2  # wrong flags
    ACCURACY = 3  # everything ran, but a comparison is below its tolerance
    UNSUPPORTED = 4  # something that Tessera does not support
    INTERNAL = 70  # a fault in Tessera itself: a reproducer was saved
    OUT_OF_MEMORY = 71  # out of memory; bmodel_format/tools/Program.h has the same code
    INTERRUPTED = 130  # Ctrl-C or SIGINT
    NO_READER = 141  # the reader of the output went away before the work was done, as with `| head`


class TesseraError(Exception):
    """A failure on which the user can act.

    message: what failed, where (ONNX names), actual versus allowed. hint: what to do, one sentence. details: further
    lines, printed indented under the message.
    """

    def __init__(
        self, message: str, code: ExitCode = ExitCode.ERROR, hint: str = "", details: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.details = details or []

    def as_dict(self) -> dict[str, object]:
        """Returns the error as a JSON-ready dict."""
        return {"code": int(self.code), "message": self.message, "hint": self.hint, "details": self.details}


QUANTISED_ALREADY = "a model with quantised operators or Q/DQ pairs does not need --quantize"


def usage_error(message: str, hint: str = "") -> TesseraError:
    """Returns the error for a wrong flag or a wrong value of a flag."""
    return TesseraError(message, ExitCode.USAGE, hint)
