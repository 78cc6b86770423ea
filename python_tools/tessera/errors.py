# SPDX-License-Identifier: Apache-2.0
"""Exit codes of all commands and the one exception that carries a message to the user."""
from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit code means; the user's page is docs/exit-codes.md."""

    OK = 0
    ERROR = 1  # the model, a file or the data is at fault: the message says which and what to do
    USAGE = 2  # wrong flags
    ACCURACY = 3  # everything ran, but a comparison is below its tolerance
    UNSUPPORTED = 4  # something Tessera does not do (yet): named, never replaced silently
    INTERNAL = 70  # a fault in Tessera itself: a reproducer was saved
    OUT_OF_MEMORY = 71  # the system gave no more memory: bmodel_format/tools/Program.h has the same
    INTERRUPTED = 130  # Ctrl-C or SIGINT
    NO_READER = 141  # who read the output went away before the work was done, as `| head` does


class TesseraError(Exception):
    """A failure the user can act on.

    message: what failed, where (ONNX names), actual against allowed. hint: what to do, one sentence.
    details: further lines, printed indented under the message.
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
        """The same as a JSON-ready dict."""
        return {"code": int(self.code), "message": self.message, "hint": self.hint, "details": self.details}


QUANTISED_ALREADY = "a model with quantised operators or Q/DQ pairs needs no --quantize"


def usage_error(message: str, hint: str = "") -> TesseraError:
    """A wrong flag or a wrong value of a flag."""
    return TesseraError(message, ExitCode.USAGE, hint)
