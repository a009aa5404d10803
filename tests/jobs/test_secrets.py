"""What is shown holds no password."""

from __future__ import annotations

import time

import pytest

from wizard.secrets import is_secret, mask, mask_options


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("jdbc:postgresql://etl:hunter2@db:5432/x", "jdbc:postgresql://etl:***@db:5432/x"),
        ("s3://key:p@ss@bucket/x", "s3://key:***@bucket/x"),
        ("url?user=a&password=b&x=1", "url?user=a&password=***&x=1"),
        ('required username="u" password="h;2";', 'required username="u" password=***;'),
        ("{'client_secret': 'x y', 'a': 1}", "{'client_secret': ***, 'a': 1}"),
        ("--db-password hunter2 --n 1", "--db-password *** --n 1"),
        ("Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer ***"),
        ("id AKIAABCDEFGHIJKLMNOP here", "id *** here"),
        ("fs.s3a.secret.key=abc", "fs.s3a.secret.key=***"),
    ],
)
def test_a_secret_is_masked_and_the_rest_is_kept(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    ["abfss://container@account.dfs.core.windows.net/x", "http://driver:4040/api", "localhost:9092", "a@b.c", "/a/b"],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "name",
    ["password", "kafka.ssl.key.password", "kafka.sasl.jaas.config", "clientSecret", "auth_token", "fs.s3a.access.key",
     "API-KEY", "spark.hadoop.fs.azure.account.key.x"],
)  # fmt: skip
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)
    assert mask_options({name: "x", "subscribe": "t"}) == {name: "***", "subscribe": "t"}


@pytest.mark.parametrize("hostile", ["a" * 1_000_000, "://" + "a" * 1_000_000, "-" * 1_000_000, "password" * 100_000])
def test_masking_a_large_log_is_quick(hostile: str) -> None:
    began = time.process_time()
    mask(hostile)
    assert time.process_time() - began < 3
