# SPDX-License-Identifier: Apache-2.0
"""Chat templates: the text of a conversation as a model was trained on it."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..errors import ExitCode, TesseraError

Message = Mapping[str, str]


def render(template: str, messages: Sequence[Message], **variables: Any) -> str:
    """Returns the text of a conversation, with the beginning of the model's answer at its end. The template cannot
    reach anything but its variables. Raises TesseraError for a template that is wrong or rejects the messages."""
    try:
        from jinja2 import TemplateError  # type: ignore[import]
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # type: ignore[import]
    except ImportError as error:
        raise TesseraError(
            "chat templates need jinja2, which is not installed",
            ExitCode.ERROR,
            hint="pip install jinja2, or use tessera generate, which needs no template",
        ) from error

    def reject(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = reject
    try:
        text = environment.from_string(template).render(messages=messages, add_generation_prompt=True, **variables)
    except (TemplateError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TesseraError(f"the model's chat template failed: {error}") from error
    return str(text)
