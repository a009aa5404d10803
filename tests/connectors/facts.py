"""What real Spark does with Kafka and Delta, tried once in one JVM: `python facts.py PLACE BOOTSTRAP`, JSON in PLACE/facts.json.

Every fact is what happened, not what should: test_facts.py says which it must be. Tables and checkpoints stay in PLACE.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "fixtures" / room) for room in ("cluster", "connectors")]

from broker import Topics  # noqa: E402
from connectors import spark_conf  # noqa: E402

from wizard.spark.config import SparkConfig  # noqa: E402
from wizard.spark.session import build_session  # noqa: E402

CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Snapshots of two-file tables are not worth fifty tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    **spark_conf("kafka", "delta"),
}
FEATURES = {
    "column_mapping": "'delta.columnMapping.mode'='name'",
    "deletion_vectors": "'delta.enableDeletionVectors'='true'",
    "row_tracking": "'delta.enableRowTracking'='true'",
    "in_commit_timestamps": "'delta.enableInCommitTimestamps'='true'",
    "append_only": "'delta.appendOnly'='true'",
    # With a feature that Delta has no number for, or it writes the constraint down as a version of the protocol.
    "check_constraints": "'delta.feature.checkConstraints'='supported', 'delta.feature.timestampNtz'='supported'",
    "generated_columns": "'delta.feature.generatedColumns'='supported'",
    "timestamp_ntz": "'delta.feature.timestampNtz'='supported'",
}
# Columns, those that are written, and what is written to them, where it is not the id alone.
SHAPES = {
    "generated_columns": ("id long, twice long generated always as (id * 2)", "id", "id"),
    "timestamp_ntz": ("id long, at timestamp_ntz", "id, at", "id, timestamp_ntz'2026-01-01 00:00:00'"),
}


class Lab:
    def __init__(self, place: Path, bootstrap: str) -> None:
        self.place = place
        self.topics = Topics(bootstrap)
        self.spark = build_session(
            "facts", SparkConfig("local[2]", "1g", shuffle_partitions=1, log_level="OFF", conf=CONF)
        )
        self.facts: dict[str, Any] = {}

    def at(self, name: str) -> str:
        return str(self.place / name)

    def stream(self, source: Any, checkpoint: str, out: str) -> str:
        """Runs it over what is there; "" or what it died of."""
        writer = source.writeStream.format("delta").option("checkpointLocation", self.at(checkpoint))
        query = writer.trigger(availableNow=True).start(self.at(out))
        try:
            query.awaitTermination()
            return ""
        except Exception as error:  # noqa: BLE001  what it raises is what is asked
            return " ".join(str(error).split("\n=== ")[0].split())[:900]
        finally:
            query.stop()

    def files(self, name: str) -> Any:
        return self.spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(self.at(name))

    def table(self, name: str, **options: str) -> Any:
        return self.spark.readStream.format("delta").options(**options).load(self.at(name))

    def kafka(self, topic: str, **options: str) -> Any:
        servers = {"kafka.bootstrap.servers": self.topics.address, "subscribe": topic}
        return self.spark.readStream.format("kafka").options(**servers, **options).load()

    def rows(self, out: str) -> list[int]:
        return sorted(row.id for row in self.spark.read.format("delta").load(self.at(out)).collect())

    def write(self, name: str, number: int) -> None:
        path = self.place / name / f"f{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'{{"id": {number}}}\n')
        os.utime(path, (1000 + number, 1000 + number))

    def copy(self, name: str, to: str) -> None:
        shutil.rmtree(self.place / to, ignore_errors=True)
        shutil.copytree(self.place / name, self.place / to)
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # the table is another one now

    def cut(self, checkpoint: str, batch: int) -> None:
        """Takes offsets and commits back, as a rollback does."""
        for path in [
            *(self.place / checkpoint / "offsets").iterdir(),
            *(self.place / checkpoint / "commits").iterdir(),
        ]:
            number = path.name.strip(".").split(".")[0]
            if number.isdigit() and int(number) > batch:
                path.unlink()

    def txn(self, out: str, checkpoint: str) -> int | None:
        query = json.loads((self.place / checkpoint / "metadata").read_text())["id"]
        return DeltaTable(self.at(out)).transaction_version(query)

    def offset(self, checkpoint: str, batch: int) -> Any:
        return json.loads((self.place / checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])


def delta_sink(lab: Lab) -> None:
    for number in range(3):
        lab.write("in", number)
    lab.stream(lab.files("in"), "ck", "out")
    lab.copy("ck", "ck.whole")
    lab.copy("out", "out.whole")
    found: dict[str, Any] = {"whole": lab.rows("out"), "txn": lab.txn("out", "ck")}
    DeltaTable(lab.at("out")).restore(0)
    found["txn_after_restore"] = lab.txn("out", "ck")
    lab.cut("ck", 0)
    lab.stream(lab.files("in"), "ck", "out")
    found["replay_under_the_same_id"] = lab.rows("out")
    lab.copy("out.whole", "out")
    lab.copy("ck.whole", "ck")
    DeltaTable(lab.at("out")).restore(0)
    query = json.loads((lab.place / "ck/metadata").read_text())["id"]
    lowered = CommitProperties(app_transactions=[Transaction(query, 0)])
    write_deltalake(lab.at("out"), pa.table({"id": pa.array([], pa.int64())}), mode="append", commit_properties=lowered)
    lab.cut("ck", 0)
    lab.stream(lab.files("in"), "ck", "out")
    found["replay_with_the_txn_lowered"] = lab.rows("out")
    lab.copy("out.whole", "out")
    lab.stream(lab.files("in"), "ck.new", "out")
    found["reset_over_the_full_table"] = lab.rows("out")
    lab.copy("out.whole", "out")
    DeltaTable(lab.at("out")).delete()
    lab.stream(lab.files("in"), "ck.newer", "out")
    found["reset_over_the_emptied_table"] = lab.rows("out")
    lab.facts["delta_sink"] = found


def delta_source(lab: Lab) -> None:
    """Each case is a table and a checkpoint; what the stream did stays beside them, and the offset it had."""
    lab.copy("out.whole", "up")
    lab.stream(lab.table("up"), "down.ck", "down")
    lab.copy("down.ck", "down.ck.whole")
    lab.copy("down", "down.whole")
    cases: dict[str, Any] = {"offset": lab.offset("down.ck", 0)}

    def case(name: str, change: Any, **options: str) -> None:
        lab.copy("out.whole", f"up.{name}")
        lab.copy("down.ck.whole", f"down.ck.{name}")
        lab.copy("down.whole", f"down.{name}")
        change(lab.at(f"up.{name}"))
        error = lab.stream(lab.table(f"up.{name}", **options), f"down.ck.{name}", f"down.{name}")
        rows = lab.rows(f"down.{name}")
        cases[name] = {"table": lab.at(f"up.{name}"), "error": error, "rows": rows, "options": options}

    def more(path: str, number: int = 7) -> None:
        write_deltalake(path, pa.table({"id": pa.array([number], pa.int64())}), mode="append")

    def undone(path: str) -> None:
        version = DeltaTable(path).version()
        DeltaTable(path).delete()
        DeltaTable(path).restore(version)

    def anew(path: str) -> None:
        shutil.rmtree(path)
        more(path)

    def cleaned(path: str) -> None:
        for number in (7, 8, 9):
            more(path, number)
        DeltaTable(path).create_checkpoint()
        for version in range(5):
            (Path(path) / f"_delta_log/{version:020d}.json").unlink()
            (Path(path) / f"_delta_log/.{version:020d}.json.crc").unlink(missing_ok=True)

    case("appended", more)
    case("emptied", lambda path: DeltaTable(path).delete())
    case("emptied_and_ignored", lambda path: (DeltaTable(path).delete(), more(path)), ignoreDeletes="true")
    case("replaced", lambda path: write_deltalake(path, pa.table({"id": pa.array([7], pa.int64())}), mode="overwrite"))
    case("undone", undone)
    case("anew", anew)
    case("cleaned", cleaned)
    # The offset moved behind the commits of the undo, which end with version 4: the stream goes on.
    offsets = lab.place / "down.ck.whole/offsets/0"
    lines = offsets.read_text().splitlines()
    offsets.write_text("\n".join([*lines[:2], json.dumps(json.loads(lines[2]) | {"reservoirVersion": 5})]))
    case("undone_and_moved", lambda path: (undone(path), more(path)))
    lab.facts["delta_source"] = cases


def features(lab: Lab) -> None:
    found = {}
    for name, properties in FEATURES.items():
        path = lab.at(f"feature.{name}")
        columns, named, values = SHAPES.get(name, ("id long", "id", "id"))
        lab.spark.sql(f"create table delta.`{path}` ({columns}) using delta tblproperties ({properties})")
        if name == "check_constraints":
            lab.spark.sql(f"alter table delta.`{path}` add constraint positive check (id >= 0)")
        lab.spark.sql(f"insert into delta.`{path}` ({named}) select {values} from range(10)")
        if name == "deletion_vectors":
            lab.spark.sql(f"delete from delta.`{path}` where id = 7")
        lab.copy(f"feature.{name}", f"feature.{name}.tried")
        tried = lab.at(f"feature.{name}.tried")
        had = lab.rows(f"feature.{name}.tried")
        version = DeltaTable(tried).version()
        try:
            DeltaTable(tried).delete()
            emptied = lab.rows(f"feature.{name}.tried")
            DeltaTable(tried).restore(version)
            found[name] = {"path": path, "had": had, "emptied": emptied, "back": lab.rows(f"feature.{name}.tried")}
        except Exception as error:  # noqa: BLE001  what deltalake raises is what is asked
            found[name] = {"path": path, "had": had, "refused": str(error)[:200]}
    lab.facts["features"] = found


def kafka(lab: Lab) -> None:
    topics = lab.topics
    found: dict[str, Any] = {}

    def send(topic: str, *records: tuple[int, int]) -> None:
        topics.send(topic, [(partition, None, b"v", at) for partition, at in records])

    def read(topic: str, name: str, **options: str) -> str:
        return lab.stream(lab.kafka(topic, **options).selectExpr("offset as id"), f"k.ck.{name}", f"k.{name}")

    topics.create("begins", 2, retention_ms="-1")
    send("begins", *[(0, 1000 * n) for n in range(1, 6)], (1, 1000), (1, 2000))
    topics.drop_before("begins", 0, 1)
    forms = {
        "earliest": {"startingOffsets": "earliest"},
        "latest": {},
        "json": {"startingOffsets": '{"begins": {"0": -2, "1": 1}}'},
        "time": {"startingTimestamp": "2000", "startingOffsets": "latest"},
        "times": {"startingOffsetsByTimestamp": '{"begins": {"0": 3000, "1": 0}}'},
    }
    for name, options in forms.items():
        error = read("begins", name, **options)
        pinned = (lab.place / f"k.ck.{name}/sources/0/0").read_bytes() if not error else b""
        found[f"begins_{name}"] = {"error": error, "options": options, "pinned": pinned.decode("latin-1")}

    def lived(name: str, change: Any) -> None:
        """Five records read; then something happens to the topic, and the query starts again."""
        topic = f"lived-{name}"
        topics.create(topic, 1, retention_ms="-1")
        send(topic, *[(0, 1000)] * 5)
        read(topic, name, startingOffsets="earliest")
        change(topic)
        error = read(topic, name, startingOffsets="earliest")
        found[name] = {"error": error, "rows": lab.rows(f"k.{name}"), "offset": lab.offset(f"k.ck.{name}", 0)}

    def anew(topic: str, records: int) -> None:
        topics.delete(topic)
        topics.create(topic, 1, retention_ms="-1")
        send(topic, *[(0, 2000)] * records)

    def aged(topic: str) -> None:
        send(topic, *[(0, 2000)] * 5)
        topics.drop_before(topic, 0, 8)

    def grown(topic: str) -> None:
        topics.add_partitions(topic, 2)
        send(topic, (1, 2000), (1, 2000))

    lived("aged", aged)
    lived("shorter", lambda topic: anew(topic, 2))
    lived("longer", lambda topic: anew(topic, 8))
    lived("grown", grown)
    lab.facts["kafka"] = found


def main(place: Path, bootstrap: str) -> None:
    lab = Lab(place, bootstrap)
    try:
        for each in (delta_sink, delta_source, features, kafka):
            each(lab)
    finally:
        lab.spark.stop()
    (place / "facts.json").write_text(json.dumps(lab.facts, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
