"""A Delta table by its URL, with what `deltalake` needs to be told of the store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wizard.errors import BadInput

if TYPE_CHECKING:
    from deltalake import DeltaTable


def delta_table(url: str, version: int | None = None) -> DeltaTable:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise BadInput("reading a Delta table needs deltalake; pip install 'runbook[delta]'") from None
    return DeltaTable(url, version=version, storage_options=storage_options(url))


def storage_options(url: str) -> dict[str, str] | None:
    """`deltalake` takes keys, region and endpoint from the environment as s3fs does, and plain HTTP only where told."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if not url.startswith(("s3://", "s3a://")) or not endpoint.startswith("http://"):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
