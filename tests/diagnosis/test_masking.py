"""No diagnosis or explanation shows a secret, however it is quoted."""

from __future__ import annotations

import json

import pytest

from wizard.diagnosis.findings import finding
from wizard.secrets import mask, mask_all

SECRET = "s3cr3t-s3cr3t"
JAAS = f'x required username="u" password="{SECRET}";'


@pytest.mark.parametrize(
    "text",
    [
        JAAS,
        json.dumps({"kafka.sasl.jaas.config": JAAS}),
        json.dumps(json.dumps({"kafka.sasl.jaas.config": JAAS})),
        json.dumps({"password": f'a"b {SECRET}'}),
        f'password="{SECRET}',
        f"https://account.blob.core.windows.net/c?sv=1&sig={SECRET}&se=2",
        f"authorization: bearer {SECRET}",
        rf"password=ab\{SECRET}",
        f"/lake/jdbc:postgresql:/etl:{SECRET}@db/x",
    ],
)
def test_a_secret_is_masked_however_it_is_quoted(text: str) -> None:
    assert SECRET not in mask(text)
    told = finding("SINK_UNKNOWN_KIND", text, text)
    assert SECRET not in told.message + told.evidence


def test_what_lies_deep_is_masked_by_its_name_or_its_text() -> None:
    shown = mask_all({"sink": [{"password": SECRET, "path": f"s3://u:{SECRET}@b/x", "rows": 3}], "ok": (True, None)})
    assert shown == {"sink": [{"password": "***", "path": "s3://u:***@b/x", "rows": 3}], "ok": [True, None]}
