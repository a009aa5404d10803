"""Keeps passwords out of what is printed, journalled and shown.

    mask("jdbc:postgresql://etl:hunter2@db/x")   # "jdbc:postgresql://etl:***@db/x"
    mask('password="hunter2"')                   # 'password=***'

Masking errs on the side of hiding. It is for people's eyes: what is handed to Spark is never masked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

_NAMES = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|jaas|credential|private[._-]?key|access[._-]?key|api[._-]?key"
    r"|account[._-]?key|shared[._-]?key|signature|\bsig\b)"
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
# Every repeat is bounded: the text may be a driver log of any size, made by anyone.
_URL_PASSWORD = re.compile(r"(:/{1,2}[^\s/:@]{0,256}):[^\s/]{1,1024}@")
# A value in quotes may hold escaped ones (JSON), be in escaped ones itself, or be cut short before the closing one.
_VALUE = r"(?:\\{1,3}\"[^\"\n]{0,4096}\"?|\"(?:[^\"\\\n]|\\.){0,4096}\"?|'(?:[^'\\\n]|\\.){0,4096}'?|[^\s,;&\"'}\])]+)"
_ASSIGNED = re.compile(rf"({_NAMES}[\w.\-]{{0,64}}(?:\\?[\"'])?\s{{0,4}}[=:]\s{{0,4}}){_VALUE}", re.IGNORECASE)
_FLAG = re.compile(rf"((?<![\w\-])--?[\w\-]{{0,64}}?{_NAMES}[\w\-]{{0,64}}\s{{1,4}})(?!-)\S+", re.IGNORECASE)
_HEADER = re.compile(r"\b((?i:Bearer)|Basic)\s{1,4}[A-Za-z0-9+/=._~\-]{8,}")
_AWS_KEY = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")


def is_secret(name: str) -> bool:
    """Whether an option of this name is one that is not to be shown."""
    return _SECRET_NAME.search(name) is not None


def mask(text: str) -> str:
    text = _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
    text = _HEADER.sub(rf"\1 {MASK}", text)
    text = _ASSIGNED.sub(rf"\1{MASK}", text)
    text = _FLAG.sub(rf"\1{MASK}", text)
    return _AWS_KEY.sub(MASK, text)


def mask_options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: MASK if is_secret(name) else mask(value) for name, value in options.items()}


def mask_all(value: Any) -> Any:
    """The same data, with every secret in it masked however deep it lies."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {
            name: MASK if isinstance(held, (str, list, tuple, Mapping)) and is_secret(str(name)) else mask_all(held)
            for name, held in value.items()
        }
    if not isinstance(value, (list, tuple)):
        return value
    # In a command, word by word, `--password` and what it is are two of them.
    before = ("", *value)
    return [
        MASK if _is_flag(flag) and isinstance(held, str) else mask_all(held)
        for flag, held in zip(before, value, strict=False)
    ]


def _is_flag(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and "=" not in word and is_secret(word)
