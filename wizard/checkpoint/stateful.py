"""The stateful operators of a query, and the stores each of them should have: what is not there must be missed.

Spark 4 declares an operator's stores and, for all of them alike, the session's partitions. What is needed is what the
pinned `spark.sql.shuffle.partitions` and the schema of the keys say: an operator without keys (a global aggregation, a
limit) keeps partition 0 alone. Before Spark 4 the stores are told by the directories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from wizard.checkpoint.commits import CommitEntry
from wizard.checkpoint.logfile import Unreadable, batch_id
from wizard.checkpoint.operators import OperatorMetadata, StateSchema, read_operator_metadata
from wizard.checkpoint.state import KINDS, State, StoreFiles, ids_from_commits, read_store_files
from wizard.store import Listing, Store

_NOT_STORES = ("SSTs", "logs", "_metadata", "_stateSchema")
_JOIN_STORES = (
    "left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue",
)  # fmt: skip
_KEEPS_ONE = "globalLimit"  # whatever it declares, and with any schema
_MOST_OPERATORS = 1000  # a directory with a larger number is of no query


@dataclass(frozen=True)
class Operator:
    """`partitions` is what Spark declared, `needed` what the next batch loads, and `on_disk` how many of those are there.
    `name` is told by metadata or, for joins, by the stores."""

    id: int
    name: str | None
    stores: tuple[str, ...]
    partitions: int
    needed: int
    on_disk: int
    inferred: bool = False
    schema_files: tuple[str, ...] = ()  # by absolute path, wherever the checkpoint is now


def read_operators(
    store: Store, tree: Mapping[str, Listing], pinned: int | None, schemas: Iterable[StateSchema]
) -> tuple[tuple[Operator, ...], tuple[int, ...], tuple[Unreadable, ...]]:
    """The operators, the batches that runs began with where metadata tells them, and what could not be read."""
    state = tree.get("state")
    keyed = {schema.path.split("/")[1]: key for schema in schemas if (key := _has_key(schema)) is not None}
    numbered = ((batch_id(name), name) for name in (state.dirs if state else ()))
    there = {op: name for op, name in numbered if op is not None and op < _MOST_OPERATORS}
    # Spark numbers them from 0: one that is not there among others is lost.
    lost = set(range(max(there, default=0))) - there.keys()
    operators = [Operator(op, None, (), pinned or 1, pinned or 1, 0, inferred=True) for op in lost]
    run_starts: set[int] = set()
    damaged: list[Unreadable] = []
    for op, name in there.items():
        path, starts = _metadata_file(tree, f"state/{name}")
        run_starts.update(starts)
        declared = read_operator_metadata(store, path) if path else None
        if isinstance(declared, Unreadable):
            damaged.append(declared)
        on_disk = _partitions(tree, name)
        stores = sorted({each for p in on_disk.values() for each in _stores_in(tree, f"state/{name}/{p}")})
        if isinstance(declared, OperatorMetadata):
            count = max((each.partitions or 0 for each in declared.stores), default=0) or len(on_disk)
            needed = pinned or count  # a repartition changes the conf
            label: str | None = declared.name
            told = tuple(each.name for each in declared.stores) or tuple(stores)
            one_will_do = declared.name == _KEEPS_ONE or keyed.get(name) is False
        else:
            join = any(each.startswith(("left-", "right-")) for each in stores)
            label = "symmetricHashJoin" if join else None
            told = _JOIN_STORES if join and set(stores) <= set(_JOIN_STORES) else tuple(stores)
            one_will_do = not join and not keyed.get(name)
            needed = max(pinned or 0, max(on_disk, default=0) + 1)
            count = needed if not one_will_do or on_disk.keys() != {0} else 1
        if one_will_do and on_disk.keys() == {0}:
            needed = 1
        named = () if not isinstance(declared, OperatorMetadata) else declared.stores
        schema_files = tuple(file for each in named for file in each.schema_files)
        inferred = not isinstance(declared, OperatorMetadata)
        operators.append(Operator(op, label, told, count, needed, _within(on_disk, needed), inferred, schema_files))
    return tuple(sorted(operators, key=lambda each: each.id)), tuple(sorted(run_starts)), tuple(damaged)


def read_state(tree: Mapping[str, Listing], operators: Iterable[Operator], commits: list[CommitEntry]) -> State:
    """Every store of every partition that is there; one that should be in it and is not has no files."""
    stores: list[StoreFiles] = []
    for operator in operators:
        for partition, directory in sorted(_partitions(tree, str(operator.id)).items()):
            if partition >= operator.needed:
                continue  # left by a repartition to fewer: no batch loads it
            place = f"state/{operator.id}/{directory}"
            for index, name in enumerate(operator.stores):
                path = place if name == "default" else f"{place}/{name}"
                listing = tree.get(path) or Listing()
                files = read_store_files(operator.id, partition, name, listing, tree.get(f"{path}/SSTs"))
                ids = ids_from_commits(commits, operator.id, partition, index)
                stores.append(replace(files, ids=ids) if ids else files)
    return State(tuple(stores))


def _partitions(tree: Mapping[str, Listing], operator: str) -> dict[int, str]:
    listing = tree.get(f"state/{operator}")
    return {p: name for name in (listing.dirs if listing else ()) if (p := batch_id(name)) is not None}


def _within(partitions: Mapping[int, str], count: int) -> int:
    return sum(1 for partition in partitions if partition < count)


def _metadata_file(tree: Mapping[str, Listing], operator: str) -> tuple[str | None, list[int]]:
    v2 = tree.get(f"{operator}/_metadata/v2")
    starts = [n for name in v2.files if (n := batch_id(name)) is not None] if v2 else []
    if starts:
        return f"{operator}/_metadata/v2/{max(starts)}", starts
    v1 = tree.get(f"{operator}/_metadata")
    return (f"{operator}/_metadata/metadata" if v1 and "metadata" in v1.files else None), []


def _stores_in(tree: Mapping[str, Listing], partition: str) -> list[str]:
    listing = tree.get(partition)
    if listing is None:
        return []
    if any(name.rpartition(".")[2] in KINDS for name in listing.files):
        return ["default"]  # a directory beside its files is a stranger
    return [name for name in listing.dirs if name not in _NOT_STORES] or ["default"]


def _has_key(schema: StateSchema) -> bool | None:
    """A global aggregation has a key of no columns, a global limit one of no type."""
    try:
        fields = json.loads(schema.columns[0][1])["fields"]
        return any(field["type"] not in ("null", "void") for field in fields)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
