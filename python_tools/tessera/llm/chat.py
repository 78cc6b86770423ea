# SPDX-License-Identifier: Apache-2.0
"""Chat templates: the text of a conversation as a model was trained on it."""
from __future__ import annotations

import datetime
import json
from typing import Any, Mapping, Sequence

from ..errors import ExitCode, TesseraError

Message = Mapping[str, str]


def render(template: str, messages: Sequence[Message], **variables: Any) -> str:
    """Returns the text of a conversation, with the beginning of the model's answer at its end. The template cannot
    reach anything but its variables. Raises TesseraError for a template that is wrong or rejects the messages."""
    try:
        from jinja2 import TemplateError  # type: ignore[import]
    except ImportError as error:
        raise TesseraError(
            "chat templates need jinja2, which is not installed",
            ExitCode.ERROR,
            hint="pip install jinja2, or use tessera generate, which needs no template",
        ) from error
    given = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True, **variables}
    try:
        text = _environment().from_string(template).render(given)
    except (TemplateError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TesseraError(f"the model's chat template failed: {error}") from error
    return str(text)


def _environment() -> Any:
    """Returns what templates may use, which is the same as in transformers."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension  # type: ignore[import]
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # type: ignore[import]

    class Generation(Extension):
        """{% generation %} .. {% endgeneration %} marks the text of the model, which matters for training only."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def reject(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **how: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)  # jinja2's would escape < and >

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = reject
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment
