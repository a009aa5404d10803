"""The Kafka source against a real broker: what it holds, what became of it, and how it says that it cannot answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wizard.catalogue.live.config import starts_earliest
from wizard.checkpoint.reader import read_checkpoint
from wizard.diagnosis.held import made_anew
from wizard.errors import BadInput, RunbookError
from wizard.jobs.registry import load_registry
from wizard.sources.interface import OffsetSource, lost, renamed
from wizard.sources.kafka import KafkaSource, behind, client_settings
from wizard.store import open_store

if TYPE_CHECKING:
    from broker import Broker

needs_broker = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def source(broker: Broker, topic: str, **options: str) -> KafkaSource:
    return KafkaSource({"kafka.bootstrap.servers": broker.address, "subscribe": topic, **options})


def fill(broker: Broker, topic: str, counts: dict[int, int], first_ms: int = 1_000) -> None:
    """`counts` records for each partition, a second apart."""
    broker.send(topic, [(p, b"k", b"v", first_ms + 1_000 * n) for p, count in counts.items() for n in range(count)])


class TestWithABroker:
    pytestmark = needs_broker

    def test_it_is_a_source_with_offsets(self, broker: Broker) -> None:
        broker.create("plain", 2)
        assert isinstance(source(broker, "plain"), OffsetSource)

    def test_an_empty_topic_begins_where_it_ends(self, broker: Broker) -> None:
        broker.create("empty", 2)
        ends = source(broker, "empty").ends()
        assert ends.earliest == ends.latest == {"empty": {"0": 0, "1": 0}}

    def test_the_ends_are_the_brokers_and_retention_moves_the_first(self, broker: Broker) -> None:
        broker.create("aged", 2)
        fill(broker, "aged", {0: 7, 1: 3})
        broker.drop_before("aged", 0, 4)
        ends = source(broker, "aged").ends()
        assert ends.earliest == {"aged": {"0": 4, "1": 0}}
        assert ends.latest == {"aged": {"0": 7, "1": 3}}
        assert lost(ends, {"aged": {"0": 2, "1": 0}}, None) == [
            "aged partition 0: offsets 2–3 are gone, the source begins at 4"
        ]
        # Two records of partition 0 are read and three are left of five; of partition 1 nothing is read.
        assert behind(ends, {"aged": {"0": 6}}) == {"aged": {"0": 1, "1": 3}}
        assert behind(ends, {"aged": {"0": 1, "1": 3}}) == {"aged": {"0": 3, "1": 0}}

    def test_a_topic_created_anew_has_another_id(self, broker: Broker) -> None:
        broker.create("anew")
        before = source(broker, "anew").ends()
        assert renamed(source(broker, "anew").ends(), before.ids) == []
        broker.delete("anew")
        broker.create("anew")
        after = source(broker, "anew").ends()
        assert renamed(after, before.ids) == [
            f"the topic anew was created anew: its id was {before.ids['anew']}, now {after.ids['anew']}"
        ]

    def test_partitions_that_were_added_are_seen(self, broker: Broker) -> None:
        broker.create("grown")
        fill(broker, "grown", {0: 2})
        broker.add_partitions("grown", 3)
        fill(broker, "grown", {2: 4})
        assert source(broker, "grown").ends().latest == {"grown": {"0": 2, "1": 0, "2": 4}}

    def test_a_time_is_turned_into_offsets(self, broker: Broker) -> None:
        broker.create("timed", 2)
        fill(broker, "timed", {0: 5, 1: 2})  # at 1000, 2000, …
        assert source(broker, "timed").at_time(2_500) == {"timed": {"0": 2, "1": 2}}
        assert source(broker, "timed").at_time(0) == {"timed": {"0": 0, "1": 0}}

    def test_starting_offsets_in_each_form(self, broker: Broker) -> None:
        broker.create("begun", 2)
        fill(broker, "begun", {0: 5, 1: 2})
        broker.drop_before("begun", 0, 1)

        def begins(**options: str) -> Any:
            return source(broker, "begun", **options).starting()["begun"]

        assert begins() == {"0": 5, "1": 2}  # Spark's default is the latest
        assert begins(startingOffsets="latest") == {"0": 5, "1": 2}
        assert begins(startingOffsets="earliest") == {"0": 1, "1": 0}
        assert begins(startingOffsets='{"begun": {"0": -2, "1": -1}}') == {"0": 1, "1": 2}
        assert begins(startingOffsets='{"begun": {"0": 3, "1": 1}}') == {"0": 3, "1": 1}
        assert begins(startingTimestamp="2000", startingOffsets="latest") == {"0": 1, "1": 1}
        assert begins(startingOffsetsByTimestamp='{"begun": {"0": 3000, "1": 0}}') == {"0": 2, "1": 0}
        with pytest.raises(RunbookError, match="begun partition 1 has no record of that time or later"):
            begins(startingTimestamp="4000")
        assert begins(startingTimestamp="4000", startingOffsetsByTimestampStrategy="latest") == {"0": 3, "1": 2}
        with pytest.raises(BadInput, match="does not name partition 1 of begun"):
            begins(startingOffsets='{"begun": {"0": 3}}')

    def test_a_topic_created_anew_is_told_by_the_times_of_its_records(self, broker: Broker) -> None:
        hour = 3_600_000
        broker.create("dated", 2, retention_ms="-1")
        fill(broker, "dated", {0: 3}, first_ms=10 * hour)
        read = {"dated": {"0": 2, "1": 0}}
        asked = source(broker, "dated")
        # Offset 1 was written at ten hours and one second.
        assert asked.too_new(read, 10 * hour) == []
        assert asked.too_new(read, 9 * hour) == [
            "dated partition 0: offset 1 was read by a batch planned at 1970-01-01T09:00:00Z "
            "and was written at 1970-01-01T10:00:01Z: the topic was created anew"
        ]

    def test_a_topic_shorter_than_what_was_read_was_created_anew(self, broker: Broker, tmp_path: Path) -> None:
        broker.create("shorter")
        fill(broker, "shorter", {0: 3})
        for name, text in {
            "metadata": '{"id":"3b9c4b3e-5d0e-4f5e-9a55-0f3a1f3f0c11"}',
            "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5000,"conf":{}}\n{"shorter":{"0":5}}',
            "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
        }.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        asked = source(broker, "shorter")
        assert made_anew(asked, asked.ends(), read_checkpoint(open_store(str(tmp_path))), "0") == [
            "shorter partition 0 was read up to 5 and the source ends at 3: the topic was created anew"
        ]

    def test_topics_by_pattern_and_partitions_by_name(self, broker: Broker) -> None:
        broker.create("fleet-a", 2)
        broker.create("fleet-b")
        servers = {"kafka.bootstrap.servers": broker.address}
        assert set(KafkaSource(servers | {"subscribePattern": "fleet-.*"}).ends().latest) == {"fleet-a", "fleet-b"}
        assert KafkaSource(servers | {"assign": '{"fleet-a": [1]}'}).ends().latest == {"fleet-a": {"1": 0}}

    def test_offsets_are_not_dense_after_a_transaction(self, broker: Broker) -> None:
        from confluent_kafka import Producer

        broker.create("holes")
        producer = Producer(broker.client() | {"transactional.id": "t"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("holes", b"one")
        producer.commit_transaction(30)
        assert [record[:2] for record in broker.read("holes")] == [(0, 0)]
        assert source(broker, "holes").ends().latest == {"holes": {"0": 2}}  # the commit's marker has an offset too
        assert not KafkaSource.dense
        began = time.monotonic()
        assert source(broker, "holes").too_new({"holes": {"0": 2}}, 0) == []  # offset 1 is no record
        assert time.monotonic() - began < 8
        assert "__transaction_state" in broker.names()
        everything = KafkaSource({"kafka.bootstrap.servers": broker.address, "subscribePattern": ".*"}).ends().latest
        assert "holes" in everything and "__transaction_state" not in everything, "Spark leaves the broker's own out"

    def test_a_topic_that_is_not_there_is_named(self, broker: Broker) -> None:
        with pytest.raises(RunbookError, match=f"there is no topic nowhere on {broker.address}"):
            source(broker, "nowhere").ends()


def test_a_broker_that_is_down_is_told_in_one_line_and_soon() -> None:
    began = time.monotonic()
    with pytest.raises(RunbookError, match=r"the Kafka cluster 127\.0\.0\.1:1 does not answer: ") as told:
        KafkaSource({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}).ends()
    assert time.monotonic() - began < 12
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (
            {
                "kafka.security.protocol": "SASL_SSL",
                "kafka.sasl.mechanism": "SCRAM-SHA-512",
                "kafka.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required\n"
                    ' username="etl" password="p\\"w=;d";'
                ),
                "kafka.ssl.truststore.location": "/etc/ca.pem",
                "kafka.ssl.truststore.type": "PEM",
                "kafka.ssl.endpoint.identification.algorithm": "",
            },
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "etl",
                "sasl.password": 'p"w=;d',
                "ssl.ca.location": "/etc/ca.pem",
                "ssl.endpoint.identification.algorithm": "none",
            },
        ),
        (
            {"kafka.ssl.keystore.location": "/k.p12", "kafka.ssl.keystore.type": "PKCS12", "kafka.ssl.keystore.password": "x"},
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "x"},
        ),
        ({"kafka.fetch.min.bytes": "1", "subscribe": "t", "startingOffsets": "earliest"}, {}),
    ],
)  # fmt: skip
def test_sparks_options_are_put_into_librdkafkas_words(options: dict[str, str], settings: dict[str, str]) -> None:
    assert client_settings(options) == settings


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.ssl.truststore.location": "/t.jks"}, "is a JKS store, which only Java reads"),
        ({"kafka.sasl.jaas.config": "com.example.OwnLoginModule required;"}, "is not one this tool can log in with"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_with_what_to_do(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        client_settings(options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "t"}, "no option kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "h:1"}, "it has none of them"),
        ({"kafka.bootstrap.servers": "h:1", "subscribe": "t", "assign": "{}"}, "it has subscribe and assign"),
        ({"kafka.bootstrap.servers": "h:1", "assign": "t"}, "the option assign must be JSON"),
    ],
)
def test_a_source_that_is_not_wholly_described_is_bad_input(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        KafkaSource(options)


def test_a_starting_time_in_the_registry_is_not_the_earliest_whatever_the_config_says(tmp_path: Path) -> None:
    """Spark looks at times first: proved in test_facts.py."""
    (tmp_path / "conf.yaml").write_text("startingOffsets: earliest\n")
    (tmp_path / "jobs.yaml").write_text(
        "version: 1\nruns: ./runs\njobs:\n  j:\n    checkpoint: ./ck\n    sink: {format: delta, path: ./out}\n"
        "    config: {file: ./conf.yaml, starting_offsets: startingOffsets}\n"
        "    source: {format: kafka, options: {kafka.bootstrap.servers: 'h:1', subscribe: t}}\n"
    )
    text = (tmp_path / "jobs.yaml").read_text()
    assert starts_earliest(load_registry(tmp_path / "jobs.yaml").jobs["j"]).holds
    (tmp_path / "jobs.yaml").write_text(text.replace("subscribe: t", "subscribe: t, startingTimestamp: '0'"))
    seen = starts_earliest(load_registry(tmp_path / "jobs.yaml").jobs["j"])
    assert (seen.truth, "startingTimestamp" in seen.evidence[0]) == ("fails", True)
    (tmp_path / "jobs.yaml").write_text(text)
    (tmp_path / "conf.yaml").write_text("startingOffsets: earliest\noptions: {StartingTimestamp: '0'}\n")
    seen = starts_earliest(load_registry(tmp_path / "jobs.yaml").jobs["j"])
    assert seen.truth == "fails"
    assert f"{tmp_path}/conf.yaml:2" in seen.evidence[0], "the config file's options win over the registry's"


@pytest.mark.parametrize("place", ["registry", "config"])
def test_a_stream_on_a_delta_table_that_is_told_a_version_does_not_begin_with_all_of_it(
    place: str, tmp_path: Path
) -> None:
    told = {"registry": ", options: {startingversion: '3'}", "config": "options: {startingVersion: latest}\n"}
    (tmp_path / "conf.yaml").write_text(told["config"] if place == "config" else "")
    more = told["registry"] if place == "registry" else ""
    (tmp_path / "jobs.yaml").write_text(
        "version: 1\nruns: ./runs\njobs:\n  j:\n    checkpoint: ./ck\n    sink: {format: delta, path: ./out}\n"
        f"    config: {{file: ./conf.yaml}}\n    source: {{format: delta, path: ./up{more}}}\n"
    )
    assert starts_earliest(load_registry(tmp_path / "jobs.yaml").jobs["j"]).truth == "unknown"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_password_opens_the_broker_and_is_never_told(tmp_path: Path) -> None:
    from broker import Broker
    from had import have

    locked = Broker(tmp_path / "locked", have("broker"), users={"admin": "let-me-in-42", "etl": "and-me-42"})
    try:
        locked.start()
        locked.create("secret")
        login = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required username=admin"
        right = login | {"kafka.sasl.jaas.config": f'{module} password="let-me-in-42";'}
        assert source(locked, "secret", **right).ends().latest == {"secret": {"0": 0}}
        wrong = login | {"kafka.sasl.jaas.config": f'{module} password="let-me-in-43";'}
        with pytest.raises(RunbookError, match="does not answer") as told:
            source(locked, "secret", **wrong).ends()
        assert "let-me-in" not in str(told.value)
        assert "uthentication" in str(told.value), "an operator has to learn that it is the password"
        locked.send("secret", [(0, b"k", b"v", 1_000)])
        locked.only_describe("secret", "etl")
        other = login | {"kafka.sasl.jaas.config": f'{module.replace("admin", "etl")} password="and-me-42";'}
        assert source(locked, "secret", **other).ends().latest == {"secret": {"0": 1}}
        with pytest.raises(RunbookError, match=r"offset 0 could not be read .*uthoriz") as told:
            source(locked, "secret", **other).too_new({"secret": {"0": 1}}, 0)
        assert "and-me" not in str(told.value)
    finally:
        locked.stop()
