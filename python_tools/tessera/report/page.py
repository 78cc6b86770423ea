# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one self-contained HTML file."""
from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any, Sequence

from .. import __version__

HERE = Path(__file__).resolve().parent
SCRIPTS = ("graph.js", "accuracy.js", "report.js")  # the last one draws at once, with what the others define
# Nothing is fetched, whatever names contain.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(models: Sequence[dict[str, Any]]) -> str:
    """Returns the HTML for the result of gather()."""
    title = ", ".join(model["name"] or model["file"] for model in models)
    data = json.dumps(_finite(models), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    script = "\n".join(_text(name) for name in SCRIPTS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_text('report.css')}</style></head>\n"
        f"<body><header><h1>{html.escape(title)}</h1>"
        f"<p>{html.escape(', '.join(model['file'] for model in models))} · tessera {__version__}</p>"
        '<p id="choice"></p></header><nav role="tablist" aria-label="views"></nav><main></main>\n'
        '<div id="picked" role="status" hidden></div>\n'
        f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script></body></html>\n'
    )


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _finite(value: Any) -> Any:
    """Replaces NaN and infinity, which JSON cannot represent, by text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value
