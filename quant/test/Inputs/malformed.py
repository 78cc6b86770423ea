# SPDX-License-Identifier: Apache-2.0
"""malformed.py TABLE FOLDER: writes into FOLDER a good calibration table and copies with one fault each."""
import json
import sys
from pathlib import Path

good = json.loads(Path(sys.argv[1]).read_text())
good["tensors"] = [line for line in good["tensors"] if line["name"] in ("x", "y")]
b = {**good["tensors"][0], "threshold": 31.75, "min": -31.75, "max": 31.75, "scale": 0.25, "zero_point": 0, "name": "b"}
folder = Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)


def write(name, document):
    (folder / f"{name}.json").write_text(document if isinstance(document, str) else json.dumps(document))


def with_line(name, first=None, remove=(), more=()):
    line = {key: value for key, value in {**good["tensors"][0], **(first or {})}.items() if key not in remove}
    write(name, {**good, "tensors": [line, *good["tensors"][1:], *more]})


write("good", good)
write("syntax", '{"format": "tessera-calibration",\n "version": 1,\n "tensors": [}')
write("format", {**good, "format": "calibration"})
write("version", {**good, "version": 2})
write("decides", {**good, "decides_types": "yes"})
with_line("unknown_key", {"treshold": 1.0})
with_line("missing", remove=["min"])
with_line("negative", {"threshold": -127.0})
with_line("crossed", {"min": 3.0, "max": 2.0})
with_line("text", {"threshold": "big"})
with_line("infinite", {"max": 1e300})
with_line("scale", more=[{**b, "scale": 0.5}])
with_line("zero_point", more=[{**b, "zero_point": 300}])
with_line("error", {"error": -1.0})
with_line("dtype", {"dtype": "int4"})
with_line("twice", more=[good["tensors"][0]])
with_line("nameless", remove=["name"])
with_line("foreign", more=[{**b, "name": "yy"}])

head = {"format": "tessera-quantize-table", "version": 1}
write("q_syntax", "{")
write("q_format", {**head, "format": "qtable", "ops": []})
write("q_type", {**head, "ops": [{"name": "y", "type": "INT3"}]})
write("q_key", {**head, "ops": [{"name": "y", "type": "F32", "typ": "F32"}]})
write("q_twice", {**head, "ops": [{"name": "y", "type": "F32"}, {"name": "y", "type": "F32"}]})
write("q_foreign", {**head, "ops": [{"name": "Conv_9", "type": "F32"}]})
write("q_impossible", {**head, "ops": [{"name": "s", "type": "INT8"}]})
