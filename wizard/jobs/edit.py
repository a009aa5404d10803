"""One value of a YAML file changed in place: comments, order, quotes and layout of all the rest stay byte for byte.

    text = set_value(text, "jobs.yaml", ("jobs", "ingest", "checkpoint"), "./checkpoints/ingest-2")

What comes out is read again and compared with what was meant; a file that is written too unusually for that is refused,
never damaged.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import yaml

from wizard.errors import BadInput
from wizard.strict_yaml import Document, PathKey, load

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:+=@-]*\Z")


def set_value(text: str, name: str, path: PathKey, value: str) -> str:
    """`text` with the value at `path` replaced; the key, and the mappings above it, are added where they are not there."""
    document = load(text, name)
    wanted = _with(document, path, value)
    if wanted == document.data:
        return text
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    changed = mark + _Edit(text.removeprefix("\ufeff")).set(path, value)
    try:
        right = load(changed, name).data == wanted
    except BadInput:
        right = False
    if not right:
        raise BadInput(f"{document.where(path)}: {_dotted(path)} cannot be changed in place; set it to {value} by hand")
    return changed


def get_value(document: Document, path: PathKey) -> Any:
    """The value at `path`; KeyError where there is none."""
    found: Any = document.data
    for part in path:
        there = part in found if isinstance(found, dict) else isinstance(found, list) and part in range(len(found))
        if not there:
            raise KeyError(_dotted(path))
        found = found[part]
    return found


def _with(document: Document, path: PathKey, value: str) -> Any:
    data = copy.deepcopy(document.data)
    at: Any = data
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(at, dict) and isinstance(part, str):
            if last:
                at[part] = value
            else:
                at = at.setdefault(part, {})
        elif isinstance(at, list) and isinstance(part, int) and part < len(at):
            if last:
                at[part] = value
            else:
                at = at[part]
        else:
            raise BadInput(f"{document.where(path)}: there is no place for {_dotted(path)}; set it by hand")
    return data


class _Edit:
    """The parse tree with the place of every node in the text. `load` has refused all that could make it large."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root: Any = yaml.compose(text, Loader=yaml.SafeLoader)

    def set(self, path: PathKey, value: str) -> str:
        node, key = self.root, None
        for depth, part in enumerate(path):
            found = _child(node, part)
            if found is None:
                return self._add(node, [str(each) for each in path[depth:]], value)
            key, node = found
        return self._replace(key, node, value)

    def _replace(self, key: Any, node: Any, value: str) -> str:
        start, end = node.start_mark.index, _end(node, self.text)
        if isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">"):
            shown = _scalar(value, node.style)
            return self._splice(start, end, shown if start < end else f" {shown}")
        if getattr(node, "flow_style", False):
            return self._splice(start, end, _scalar(value))
        # A block goes back to the line of its key, and so does a comment that stands there.
        begin = key.end_mark.index if key is not None else start
        comment = re.search(r"#[^\r\n]*", self.text[begin:start])
        shown = f"{':' if key is not None else ''} {_scalar(value)}" + (f"  {comment[0]}" if comment else "")
        return self._splice(begin, end, shown)

    def _add(self, node: Any, keys: list[str], value: str) -> str:
        first = node.value[0][0] if isinstance(node, yaml.MappingNode) and node.value else None
        quoted = '"' if first is not None and first.style == '"' else None
        shown = _scalar(value, quoted)
        for key in reversed(keys[1:]):
            shown = f"{{{_scalar(key, quoted)}: {shown}}}"
        entry = f"{_scalar(keys[0], quoted)}: {shown}"
        if not isinstance(node, yaml.MappingNode):
            return self.text  # an empty value where a mapping is meant: refused by the reading back
        if node.flow_style:
            if first is None:
                return self._splice(node.end_mark.index - 1, node.end_mark.index - 1, entry)
            end = _end(node.value[-1][1], self.text)
            return self._splice(end, end, f", {entry}")
        end = _end(node, self.text)
        line_end = self.text.find("\n", end)
        at = len(self.text) if line_end < 0 else line_end - (self.newline == "\r\n")
        return self._splice(at, at, f"{self.newline}{' ' * node.start_mark.column}{entry}")

    def _splice(self, start: int, end: int, shown: str) -> str:
        return self.text[:start] + shown + self.text[end:]


def _child(node: Any, part: str | int) -> tuple[Any, Any] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == part), None)
    return None


def _end(node: Any, text: str) -> int:
    """Where the last character of a node is. PyYAML ends a block only where the next thing begins, comments included."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        end: int = node.end_mark.index
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            end -= len(text[:end]) - len(text[:end].rstrip())
        return end
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last, text)


def _scalar(value: str, style: str | None = None) -> str:
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style is None and _PLAIN.match(value) and not value.endswith(":"):
        try:
            if load(f"k: {value}", "").data == {"k": value}:
                return value
        except BadInput:
            return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _dotted(path: PathKey) -> str:
    return ".".join(str(part) for part in path)
