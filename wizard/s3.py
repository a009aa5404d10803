"""S3 through s3fs: one patient client, and what an object store has in place of links, renames and directories.

    fs.create(path, data)            False where the key holds other bytes; of two at once one wins (If-None-Match)
    fs.replace(path, old, new)       False where it is not, or no longer, the old bytes (If-Match)
    fs.listed([prefix, …])           every object whose path begins so, with its ETag and size
    fs.copy_all(source, target, …)   copied by the store, many at once, and compared in a new listing
    fs.delete(paths)                 a thousand a request; each answer is looked at

A request that meets a 5xx, throttling, a cut connection or silence is sent again, each time after a longer pause, for
`RUNBOOK_STORE_PATIENCE` seconds (60); then the store is said not to answer. Nothing is kept between two calls.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from aiohttp import ClientPayloadError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as NoConnection
from fsspec.asyn import sync
from s3fs import S3FileSystem

from wizard.errors import RunbookError
from wizard.secrets import mask

T = TypeVar("T")

AT_ONCE = 64
"""Requests under way at one time."""
_DELETED_AT_ONCE = 1000  # all that one DeleteObjects takes
_COPIED_AT_ONCE = 5 * 1024**3  # all that one CopyObject takes
_PATIENCE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")
_PASSING = (
    "SlowDown",
    "RequestTimeout",
    "RequestTimeTooSkewed",
    "ThrottlingException",
    "Throttling",
    "TooManyRequests",
)


class StoreUnavailable(RunbookError, OSError):
    """The store did not answer, or only with errors of its own, for as long as it was asked."""


class S3(S3FileSystem):  # type: ignore[misc]
    retries = 1  # here, below, and nowhere else: three layers that each try five times make a minute of an hour

    def __init__(self, **options: Any) -> None:
        self.patience = float(os.environ.get("RUNBOOK_STORE_PATIENCE") or _PATIENCE)
        silence = max(1.0, self.patience / 2)
        config = {
            "connect_timeout": min(10.0, silence),
            "read_timeout": silence,
            "max_pool_connections": AT_ONCE,
            "retries": {"total_max_attempts": 1, "mode": "standard"},
        }
        super().__init__(
            config_kwargs=config, max_concurrency=1, **options
        )  # more would ask for a size before each read

    async def _call_s3(self, method: str, *rest: Any, **arguments: Any) -> Any:
        call = super()._call_s3
        return await self._patiently(lambda: call(method, *rest, **arguments), arguments.get("Bucket"))

    async def _cat_file(self, path: str, *rest: Any, **arguments: Any) -> bytes:
        """The bytes come after the answer, and a connection may be cut between the two."""
        read = super()._cat_file
        return await self._patiently(lambda: read(path, *rest, **arguments), self.split_path(path)[0])

    async def _patiently(self, attempt: Callable[[], Awaitable[T]], bucket: str | None) -> T:
        began, pause, tries = time.monotonic(), _FIRST_PAUSE, 0
        while True:
            tries += 1
            try:
                return await attempt()
            except Exception as error:
                if not _passes(error):
                    told = _told(error, bucket)
                    if told is error:
                        raise
                    raise told from (error.__cause__ or error)
                waited = time.monotonic() - began
                if waited + pause > self.patience:
                    raise StoreUnavailable(
                        f"s3://{bucket or ''} does not answer: {_words(error)}; asked {tries} times in {waited:.0f} s"
                    ) from error
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # not all of them again at the same moment
            pause = min(2 * pause, _LONGEST_PAUSE)

    # --- conditional writes

    def create(self, path: str, data: bytes) -> bool:
        return bool(sync(self.loop, self._conditionally, path, data, {"IfNoneMatch": "*"}))

    def replace(self, path: str, old: bytes, new: bytes) -> bool:
        return bool(sync(self.loop, self._replace, path, old, new))

    async def _replace(self, path: str, old: bytes, new: bytes) -> bool:
        bucket, key, _ = self.split_path(path)
        try:
            etag = (await self._call_s3("head_object", Bucket=bucket, Key=key))["ETag"]
            there = await self._cat_file(path)
        except FileNotFoundError:
            return False
        # Looked at in this order, an object that changes in between has another ETag when it is written.
        return there == old and await self._conditionally(path, new, {"IfMatch": etag})

    async def _conditionally(self, path: str, data: bytes, condition: Mapping[str, str]) -> bool:
        bucket, key, _ = self.split_path(path)
        try:
            await self._call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)
        except OSError as error:
            if _code(error) in _TAKEN:
                # A put whose answer was lost is sent again, by us or below us, and then meets our own bytes.
                return await self._cat_file(path) == data
            if _code(error) == "NoSuchKey":  # If-Match on what is gone by now
                return False
            raise
        return True

    # --- many objects

    def listed(self, prefixes: Sequence[str]) -> list[dict[str, str]]:
        """For each prefix the objects whose path begins with it: rest of the path → ETag and size."""
        return list(sync(self.loop, self._side_by_side, self._listed, [(prefix,) for prefix in prefixes]))

    async def _listed(self, prefix: str) -> dict[str, str]:
        bucket, slash, key = prefix.partition("/")
        return {
            ("" if slash else "/") + each["Key"][len(key) :]: _mark(each["ETag"], each["Size"])
            async for page in self._list_pages("list_objects_v2", Bucket=bucket, Prefix=key)
            for each in page.get("Contents", ())
        }

    def copy_all(self, source: str, target: str, wanted: Mapping[str, str], none_there: bool = False) -> None:
        """Objects by the rest of their paths after `source`, as `wanted` marks them. What is there already stays."""
        todo = list(wanted) if none_there else self._lacking(target, wanted)
        if not todo:
            return
        sync(self.loop, self._side_by_side, self._copy, [(source + rest, target + rest, wanted[rest]) for rest in todo])
        # An ETag is no digest of the bytes where they came in parts, or are encrypted: then the bytes are read.
        doubted = [(source + rest, target + rest) for rest in self._lacking(target, wanted)]
        sync(self.loop, self._side_by_side, self._same_bytes, doubted, 4)

    def _lacking(self, target: str, wanted: Mapping[str, str]) -> list[str]:
        (there,) = self.listed([target])
        return [rest for rest, mark in wanted.items() if there.get(rest) != mark]

    async def _copy(self, source: str, target: str, mark: str) -> None:
        (bucket, key, _), (to_bucket, to_key, _) = self.split_path(source), self.split_path(target)
        etag, _, size = mark.rpartition(":")
        try:
            if int(size) > _COPIED_AT_ONCE:
                await self._copy_managed(source, target, int(size))
                return
            await self._call_s3(
                "copy_object", Bucket=to_bucket, Key=to_key, CopySource={"Bucket": bucket, "Key": key},
                CopySourceIfMatch=f'"{etag}"',
            )  # fmt: skip
        except FileNotFoundError:
            raise RunbookError(f"s3://{source} went away while it was copied; look who writes to it") from None
        except OSError as error:
            if _code(error) not in _TAKEN:
                raise
            raise RunbookError(f"s3://{source} was changed while it was copied; look who writes to it") from None

    async def _same_bytes(self, source: str, target: str) -> None:
        import hashlib

        async def digest(path: str) -> str:
            bucket, key, _ = self.split_path(path)

            async def attempt() -> str:
                body = (await self._call_s3("get_object", Bucket=bucket, Key=key))["Body"]
                told = hashlib.sha256()
                async for chunk in body.iter_chunks():
                    told.update(chunk)
                return told.hexdigest()

            return await self._patiently(attempt, bucket)

        if await digest(source) != await digest(target):
            raise RunbookError(f"s3://{target}: is not what was copied from s3://{source}; try again")

    def delete(self, paths: Iterable[str]) -> None:
        """All of them, or an error that names one that is left."""
        keys: dict[str, list[str]] = {}
        for path in paths:
            bucket, key, _ = self.split_path(path)
            keys.setdefault(bucket, []).append(key)
        calls = [
            (bucket, names[at : at + _DELETED_AT_ONCE])
            for bucket, names in keys.items()
            for at in range(0, len(names), _DELETED_AT_ONCE)
        ]
        sync(self.loop, self._side_by_side, self._delete, calls, 4)

    async def _delete(self, bucket: str, keys: list[str]) -> None:
        async def attempt() -> None:
            told = await self._call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
            for wrong in told.get("Errors", ()):
                # Of a thousand some may be throttled; deleting the others once more does no harm.
                kind = StoreSlow if wrong.get("Code") in (*_PASSING, "InternalError") else OSError
                raise kind(f"s3://{bucket}/{wrong.get('Key')} was not deleted ({wrong.get('Code')})")

        await self._patiently(attempt, bucket)

    async def _side_by_side(
        self, call: Callable[..., Awaitable[T]], arguments: Sequence[tuple[Any, ...]], at_once: int = AT_ONCE
    ) -> list[T]:
        """All of them, a bounded number at a time; at the first failure no further one is begun."""
        results: list[Any] = [None] * len(arguments)
        left = iter(enumerate(arguments))

        async def work() -> None:
            for number, each in left:
                results[number] = await call(*each)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(arguments))):
                    group.create_task(work())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return results


class StoreSlow(OSError):
    """An answer that asks to be asked again."""


_BROKEN = (
    StoreSlow, HTTPClientError, ResponseStreamingError, NoConnection, ConnectionClosedError, ClientPayloadError,
    ConnectionError, TimeoutError,
)  # fmt: skip


def _mark(etag: str, size: int) -> str:
    return f"{etag.strip(chr(34))}:{size}"


def _code(error: BaseException) -> str:
    """S3's own word for it; s3fs keeps it only in what its errors came from."""
    told = error if isinstance(error, ClientError) else error.__cause__
    return str(told.response.get("Error", {}).get("Code", "")) if isinstance(told, ClientError) else ""


def _passes(error: Exception) -> bool:
    """Whether it may be otherwise a moment later."""
    if isinstance(error, StoreUnavailable):
        return False  # it was asked long enough already
    if isinstance(error, _BROKEN):
        return True
    told = error if isinstance(error, ClientError) else error.__cause__
    if isinstance(told, ClientError):
        status = told.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or status == 429 or _code(told) in _PASSING
    return False


def _told(error: Exception, bucket: str | None) -> Exception:
    """As an error that the rest of the program knows: everything a store may do wrong is an OSError there."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return PermissionError(
            f"s3://{bucket or ''}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )
    if isinstance(error, OSError) and _code(error) == "NoSuchBucket":
        return FileNotFoundError(f"s3://{bucket}: there is no such bucket")
    if isinstance(error, BotoCoreError | ClientError):
        return OSError(f"s3://{bucket or ''}: {_words(error)}")
    return error


def _words(error: BaseException) -> str:
    code = _code(error)
    text = mask(" ".join(str(error).split()))[:200]
    return f"{code}: {text}" if code and code not in text else text or type(error).__name__
