"""Rows that a backfill has staged, made part of the output: through the file sink's own log, or as one Delta commit.

A manifest beside the staged files names them. It was written when they were whole, so each step can be done again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from wizard import durable
from wizard.catalogue.effects.base import Effect
from wizard.catalogue.effects.control import controller_of
from wizard.catalogue.effects.files import displace
from wizard.checkpoint.filelog import LogNames, read_entries, read_names
from wizard.checkpoint.logfile import Unreadable
from wizard.errors import RunbookError, Stopped, WorldMoved
from wizard.sinks.file_sink import LOG
from wizard.store import as_stored, local_path, open_store
from wizard.tables import delta_table

if TYPE_CHECKING:
    from wizard.catalogue.world import World

_MARK = "runbook.run"
_BLOCK = {"blockReplication": 1, "blockSize": 33554432}


@dataclass(frozen=True)
class PublishFiles(Effect):
    """Files into the directory, then their entries at the end of the newest file of the log.

    Never a log file of a new number: the live job's next batch would have that number, and be skipped.
    """

    kind: ClassVar[str] = "publish_files"
    job: str
    sink: str
    staged: str

    def says(self) -> str:
        return f"move the staged files to {self.sink} and add them to the newest file of its {LOG}"

    def do(self, world: World) -> None:
        files = manifest(self.staged)["files"]
        if not files:
            return
        self._alone(world)
        for each in files:
            here, there = durable.join(self.staged, each["path"]), durable.join(self.sink, each["path"])
            world.roots().check(there)
            if durable.exists(here):
                durable.move(here, there)
            elif not durable.exists(there):
                raise WorldMoved(f"{here} is gone, and not by this walk; find out who took it")
        names = self._names()
        if names.latest is None:
            raise RunbookError(f"{self.sink} has no {LOG}, so no reader would see the rows; reset the job instead")
        listed = self._listed(names)
        new = [each for each in files if each["path"] not in listed]
        if new:
            name = names.file_name(names.latest)
            form = next(iter(listed.values()), {})
            lines = [json.dumps(self._entry(each, form), separators=(",", ":")) for each in new]
            text = self._log_text(name)
            saved = durable.join(self._crc_saved(world), f"{name}.crc")
            self._rewrite(world, name, text.rstrip("\n") + "".join(f"\n{line}" for line in lines), saved)

    def undo(self, world: World) -> None:
        if not durable.exists(durable.join(self.staged, "manifest.json")):
            return
        ours = {each["path"] for each in manifest(self.staged)["files"]}
        log = durable.join(self.sink, LOG)
        for left in [each for each in durable.names(log) if each.endswith(durable.TEMPORARY)]:
            world.roots().check(log)
            durable.remove(durable.join(log, left))  # half of a file that was being written when this was killed
        names = self._names()
        for k in sorted(names.ids) if ours else ():
            name = names.file_name(k)
            lines = self._log_text(name).split("\n")
            kept = [line for line in lines if not line.startswith("{") or self._below(line) not in ours]
            if len(kept) < len(lines):
                self._rewrite(world, name, "\n".join(kept))
        self._crcs_back(world)
        for below in sorted(ours):
            there = durable.join(self.sink, below)
            if durable.exists(there):
                world.roots().check(there)
                # The checksum that Spark may have written beside it goes where it can be found again.
                displace(world, durable.join(durable.parent(there), f".{there.rpartition('/')[2]}.crc"))
                durable.move(there, durable.join(self.staged, below))
        for directory in sorted({durable.parent(below) for below in ours if "/" in below}, reverse=True):
            durable.remove_empty(durable.join(self.sink, directory))

    def cannot_undo(self, world: World) -> str | None:
        if not durable.exists(durable.join(self.staged, "manifest.json")):
            return None
        for each in manifest(self.staged)["files"]:
            places = [durable.join(place, each["path"]) for place in (self.staged, self.sink)]
            if not any(durable.exists(place) for place in places):
                return f"{places[1]} is gone from the output"
        state = controller_of(world, self.job).status().state
        if state != "stopped" and manifest(self.staged)["files"]:
            return f"{self.job} writes to {self.sink} ({state}); stop it first: the log of the output has one writer"
        return None

    def _alone(self, world: World) -> None:
        state = controller_of(world, self.job).status()
        if state.state != "stopped":
            raise Stopped(
                f"{self.job} is not stopped ({state.says}) and would write to the same log; stop it, then go on"
            )

    def _names(self) -> LogNames:
        listing = open_store(self.sink).list(LOG)
        if listing is not None and listing.error is not None:
            raise RunbookError(f"{self.sink}/{LOG} cannot be listed: {listing.error}")
        return read_names(listing.files if listing else ())

    def _listed(self, names: LogNames) -> dict[str, dict[str, Any]]:
        """Path below the output → entry, for all that the log lists now."""
        assert names.latest is not None
        found: dict[str, dict[str, Any]] = {}
        for entries in read_entries(open_store(self.sink), LOG, names, names.files_up_to(names.latest)).values():
            if isinstance(entries, Unreadable):
                raise RunbookError(f"{self.sink}: {entries}; reset the job, or restore the file")
            found |= {self._below(json.dumps(entry)): entry for entry in entries}
        return found

    def _below(self, line: str) -> str:
        """An entry's path below the output; the whole of it where it is elsewhere."""
        path = str(json.loads(line)["path"])
        path = as_stored(path) if local_path(path) is not None else as_stored(path).partition("://")[2]
        here = local_path(self.sink)
        # The job may have been given the output through a link, or as s3a where we have s3.
        roots = (self.sink.partition("://")[2],) if here is None else (here, os.path.realpath(here))
        return next(
            (path[len(root.rstrip("/")) + 1 :] for root in roots if path.startswith(f"{root.rstrip('/')}/")), path
        )

    def _entry(self, each: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
        """As Spark writes it: key order, an absolute URI, the block size of the files that are there."""
        there = durable.join(self.sink, each["path"])
        path = local_path(there)
        scheme, _, rest = there.partition("://") if path is None else ("file", "", path)
        uri = f"{scheme}://" + quote(rest, safe="/=:+,@&$!'()*;~-._")
        if "://" in uri and str(form.get("path", "")).partition("://")[0] not in ("", uri.partition("://")[0]):
            uri = f"{form['path'].partition('://')[0]}://{uri.partition('://')[2]}"
        block = {name: form.get(name, value) for name, value in _BLOCK.items()}
        return {
            "path": uri,
            "size": each["size"],
            "isDir": False,
            "modificationTime": each["modified"],
            **block,
            "action": "add",
        }

    def _log_text(self, name: str) -> str:
        data = durable.read(durable.join(self.sink, LOG, name))
        if data is None:
            raise WorldMoved(f"{self.sink}/{LOG}/{name} was there a moment ago and is gone; somebody writes to it")
        return data.decode()

    def _rewrite(self, world: World, name: str, text: str, crc_to: str | None = None) -> None:
        log = durable.join(self.sink, LOG)
        crc = durable.join(log, f".{name}.crc")
        world.roots().check(crc)
        # First: a checksum of other bytes may be refused, a missing one never is.
        if durable.exists(crc):
            if crc_to is None or durable.exists(crc_to):
                displace(world, crc)
            else:
                durable.move(crc, crc_to)
        durable.remove_drafts(durable.join(log, name))
        durable.write(durable.join(log, name), text.encode())

    def _crcs_back(self, world: World) -> None:
        """The checksum of the file we added to: it was taken of the bytes that are there again."""
        for saved in durable.names(self._crc_saved(world)):
            file = durable.join(self.sink, LOG, saved.removesuffix(".crc"))
            crc = durable.join(self.sink, LOG, f".{saved}")
            if durable.exists(file) and not durable.exists(crc):
                durable.move(durable.join(self._crc_saved(world), saved), crc)

    def _crc_saved(self, world: World) -> str:
        return durable.join(world.quarantine, "backfill-crc", durable.parent(self.staged).rpartition("/")[2])


@dataclass(frozen=True)
class DeltaAppend(Effect):
    """All staged rows in one commit, which carries a transaction id of its own: the table itself says whether it is done."""

    kind: ClassVar[str] = "delta_append"
    path: str
    staged: str
    app: str
    key: tuple[str, ...]

    def says(self) -> str:
        return f"append the staged rows to {self.path} in one commit, as {self.app}"

    def do(self, world: World) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake

        world.roots().check(self.path)
        if not manifest(self.staged)["files"]:
            return
        table = delta_table(self.path)
        if table.transaction_version(self.app) is not None:
            return
        properties = CommitProperties(
            app_transactions=[Transaction(self.app, 0)], custom_metadata={_MARK: f"{world.run}/{self.kind}"}
        )
        write_deltalake(table, self._rows().scanner().to_reader(), mode="append", commit_properties=properties)

    def undo(self, world: World) -> None:
        """By key: none of them was in the table before, and others may have written since."""
        from deltalake import CommitProperties

        table = delta_table(self.path)
        mark = f"{world.run}/undo-{self.kind}"
        if table.transaction_version(self.app) is None or any(e.get(_MARK) == mark for e in table.history()):
            return
        world.roots().check(self.path)
        # As the rows were told apart when they were staged: null is a key like any other.
        predicate = " AND ".join(f"(target.`{name}` IS NOT DISTINCT FROM source.`{name}`)" for name in self.key)
        rows = self._rows().scanner(columns=list(self.key)).to_reader()
        properties = CommitProperties(custom_metadata={_MARK: mark})
        merge = table.merge(rows, predicate, source_alias="source", target_alias="target", commit_properties=properties)
        merge.when_matched_delete().execute()

    def cannot_undo(self, world: World) -> str | None:
        if not durable.exists(durable.join(self.staged, "manifest.json")):
            return None
        gone = [
            each["path"]
            for each in manifest(self.staged)["files"]
            if not durable.exists(durable.join(self.staged, each["path"]))
        ]
        return f"{durable.join(self.staged, gone[0])}, which says which rows to take out, is gone" if gone else None

    def _rows(self) -> Any:
        import pyarrow.dataset as ds

        paths = [durable.join(self.staged, each["path"]) for each in manifest(self.staged)["files"]]
        return ds.dataset(paths, format="parquet")


def manifest(staged: str) -> dict[str, Any]:
    data = durable.read(durable.join(staged, "manifest.json"))
    if data is None:
        raise WorldMoved(f"{staged}/manifest.json is gone, and not by this walk; nothing more was done")
    told: dict[str, Any] = json.loads(data)
    return told
