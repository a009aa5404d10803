"""Topics of a Kafka cluster, asked through `confluent-kafka`: what they hold now, and where a new query would begin.

    source = KafkaSource({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "sensor-raw"})
    source.ends().earliest                       # {"sensor-raw": {"0": 120, "1": 98}}

The options are the ones Spark is given. What they say about security is translated for librdkafka, which reads PEM and
PKCS#12 but no Java key stores. No question waits longer than `PATIENCE`; a broker that is down is a RunbookError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from datetime import UTC, datetime
from typing import Any, TypeVar

from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.sources.interface import Ends, Offsets

PATIENCE = 8.0
SKEW_MS = 600_000
LATEST, EARLIEST = -1, -2  # in the JSON of Spark's Kafka source

_T = TypeVar("_T")
_NO_ID = ("AAAAAAAAAAAAAAAAAAAAAA", "")  # brokers before 2.8 know no topic ids
_AS_IT_IS = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
    "ssl.cipher.suites",
    "ssl.key.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "client.id",
    "client.dns.lookup",
)
_PEM = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_WORD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^\s;"\']+))')


class KafkaSource:
    dense = False  # transactions take offsets for their markers, compaction leaves holes

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = {name.lower(): value for name, value in options.items()}
        self.servers = self.options.get("kafka.bootstrap.servers", "")
        if not self.servers:
            raise BadInput("the source of format kafka has no option kafka.bootstrap.servers in the registry; add it")
        ways = [way for way in ("subscribe", "subscribepattern", "assign") if self.options.get(way)]
        if len(ways) != 1:
            said = " and ".join(ways) or "none of them"
            raise BadInput(f"a source of format kafka has one of subscribe, subscribePattern, assign; it has {said}")
        self._way = ways[0]
        self._assigned = _assigned(self.options["assign"]) if self._way == "assign" else {}

    def ends(self) -> Ends:
        admin, troubles = self._connect()
        partitions, ids = self._topics(admin, troubles)
        spec = _kafka().admin.OffsetSpec
        earliest = self._offsets(admin, troubles, partitions, spec.earliest())
        latest = self._offsets(admin, troubles, partitions, spec.latest())
        return Ends(earliest, latest, ids)

    def at_time(self, timestamp_ms: int) -> Offsets:
        """The first offset at or after the time, by partition; the end of it where every record is older."""
        found, latest = self._by_time(lambda topic, partition: timestamp_ms)
        return {t: {p: latest[t][p] if n < 0 else n for p, n in parts.items()} for t, parts in found.items()}

    def too_new(self, read: Offsets, planned_ms: int) -> list[str]:
        """Partitions whose last record before `read` was written after the batch that is said to have read it.

        A topic created anew counts from 0 again, and its records are all later than the last batch. Producers give the
        times, and their clocks may be ahead: what is later by less than `SKEW_MS` is not held against the topic.
        """
        ends = self.ends()
        kafka = _kafka()
        wanted = {
            (topic, int(p)): n - 1
            for topic, parts in read.items()
            for p, n in parts.items()
            if ends.earliest.get(topic, {}).get(p, n) < n <= ends.latest.get(topic, {}).get(p, -1)
        }
        settings: dict[str, Any] = {**client_settings(self.options), "log_level": 0, "error_cb": lambda error: None}
        consumer = kafka.Consumer(
            # The end is an answer too: a transaction's marker may be all that is there.
            settings
            | {"group.id": "runbook", "enable.auto.commit": False}
            | {"enable.partition.eof": True, "auto.offset.reset": "error"}
        )
        lines = []
        try:
            for (topic, partition), offset in sorted(wanted.items()):
                consumer.assign([kafka.TopicPartition(topic, partition, offset)])
                record = consumer.poll(PATIENCE)
                error = None if record is None else record.error()
                if record is None or (error is not None and error.code() != kafka.KafkaError._PARTITION_EOF):
                    why = f"in {PATIENCE:.0f} s" if error is None else f"({_told(error.str(), settings)})"
                    raise RunbookError(f"{topic} partition {partition}: offset {offset} could not be read {why}")
                # In a hole the record is a later one, or there is none, and that says nothing.
                if error is not None or record.offset() != offset:
                    continue
                kind, written = record.timestamp()
                if kind != kafka.TIMESTAMP_NOT_AVAILABLE and written > planned_ms + SKEW_MS:
                    lines.append(
                        f"{topic} partition {partition}: offset {offset} was read by a batch planned at {_utc(planned_ms)} "
                        f"and was written at {_utc(written)}: the topic was created anew"
                    )
        finally:
            consumer.close()
        return lines

    def starting(self) -> Offsets:
        """Where a query with a new checkpoint begins, by the options: as Spark takes them, which is in this order.

        startingTimestamp, startingOffsetsByTimestamp, startingOffsets; `latest` where there is none of them.
        """
        if told := self.options.get("startingtimestamp"):
            at = _number(told, "startingTimestamp")
            return self._from_times(lambda topic, partition: at)
        if told := self.options.get("startingoffsetsbytimestamp"):
            times = _offsets_json(told, "startingOffsetsByTimestamp")
            self._every_partition(times, "startingOffsetsByTimestamp")
            return self._from_times(lambda topic, partition: times[topic][str(partition)])
        text = self.options.get("startingoffsets", "latest").strip()
        ends = self.ends()
        if text.lower() in ("earliest", "latest"):
            return ends.earliest if text.lower() == "earliest" else ends.latest
        wanted = _offsets_json(text, "startingOffsets")
        _same_partitions(wanted, ends.latest, "startingOffsets")
        special = {EARLIEST: ends.earliest, LATEST: ends.latest}
        return {t: {p: special[n][t][p] if n in special else n for p, n in ps.items()} for t, ps in wanted.items()}

    def _from_times(self, time: Callable[[str, int], int]) -> Offsets:
        found, latest = self._by_time(time)
        late = [(t, p) for t, parts in found.items() for p, n in parts.items() if n < 0]
        if late and self.options.get("startingoffsetsbytimestampstrategy", "error").lower() != "latest":
            topic, partition = late[0]
            raise RunbookError(
                f"{topic} partition {partition} has no record of that time or later, and the query would not start; "
                "set startingOffsetsByTimestampStrategy to latest, or an earlier time"
            )
        return {t: {p: latest[t][p] if n < 0 else n for p, n in parts.items()} for t, parts in found.items()}

    def _by_time(self, time: Callable[[str, int], int]) -> tuple[Offsets, Offsets]:
        admin, troubles = self._connect()
        partitions, _ = self._topics(admin, troubles)
        spec = _kafka().admin.OffsetSpec
        found: Offsets = {}
        for topic, numbers in partitions.items():
            for each in numbers:
                one = self._offsets(admin, troubles, {topic: [each]}, spec.for_timestamp(time(topic, each)))
                found.setdefault(topic, {}).update(one[topic])
        return found, self._offsets(admin, troubles, partitions, spec.latest())

    def _every_partition(self, wanted: Offsets, option: str) -> None:
        admin, troubles = self._connect()
        partitions, _ = self._topics(admin, troubles)
        _same_partitions(wanted, {t: dict.fromkeys(map(str, ps), 0) for t, ps in partitions.items()}, option)

    def _connect(self) -> tuple[Any, list[str]]:
        """A client, and what it will have to say about its connections: librdkafka only tells that aside."""
        kafka = _kafka()
        troubles: list[str] = []
        settings = client_settings(self.options)
        given: dict[str, Any] = {**settings, "error_cb": lambda error: troubles.append(error.str()), "log_level": 0}
        try:
            return kafka.admin.AdminClient(given | {"socket.timeout.ms": int(PATIENCE * 1000)}), troubles
        except (kafka.KafkaException, ValueError) as error:
            raise BadInput(f"the options of the Kafka source are refused: {_told(error, settings)}") from None

    def _topics(self, admin: Any, troubles: list[str]) -> tuple[dict[str, list[int]], dict[str, str]]:
        """The partitions of every topic that is read, and what identifies each topic."""
        kafka = _kafka()
        try:
            # The first question: where nothing listens it is this one that waits.
            known = admin.list_topics(timeout=PATIENCE).topics
        except kafka.KafkaException as error:
            admin.poll(0)
            raise self._unreachable(error, troubles) from None
        if self._way == "subscribepattern":
            # Java's and Python's patterns differ little; what differs is not used in names of topics.
            try:
                names = sorted(name for name in known if re.fullmatch(self.options["subscribepattern"], name))
            except re.error as error:
                raise BadInput(f"subscribePattern is not a pattern: {error}") from None
        else:
            names = list(self._assigned) or [n.strip() for n in self.options["subscribe"].split(",") if n.strip()]
        if gone := [name for name in names if name not in known]:
            raise RunbookError(f"there is no topic {gone[0]} on {mask(self.servers)}; was it deleted or renamed?")
        if not names:
            raise RunbookError(f"no topic on {mask(self.servers)} matches {self.options['subscribepattern']}")
        told = admin.describe_topics(kafka.TopicCollection(names), request_timeout=PATIENCE)
        about = {name: self._wait(future, troubles) for name, future in told.items()}
        if self._way == "subscribepattern":
            # Spark never sees the broker's own topics, whatever the pattern.
            about = {name: one for name, one in about.items() if not one.is_internal}
        partitions = {name: self._assigned.get(name) or [p.id for p in one.partitions] for name, one in about.items()}
        ids = {name: str(one.topic_id) for name, one in about.items()}
        return partitions, {name: one for name, one in ids.items() if one not in _NO_ID}

    def _offsets(self, admin: Any, troubles: list[str], partitions: Mapping[str, Iterable[int]], spec: Any) -> Offsets:
        kafka = _kafka()
        committed = self.options.get("kafka.isolation.level", "").lower() == "read_committed"
        told = admin.list_offsets(
            {kafka.TopicPartition(topic, each): spec for topic, numbers in partitions.items() for each in numbers},
            # `latest` is another offset for a reader that does not see open transactions.
            isolation_level=kafka.IsolationLevel.READ_COMMITTED if committed else kafka.IsolationLevel.READ_UNCOMMITTED,
            request_timeout=PATIENCE,
        )
        found: Offsets = {topic: {} for topic in partitions}
        for at, future in sorted(told.items(), key=lambda item: (item[0].topic, item[0].partition)):
            found[at.topic][str(at.partition)] = int(self._wait(future, troubles).offset)
        return found

    def _wait(self, future: Future[_T], troubles: list[str]) -> _T:
        try:
            return future.result(PATIENCE + 1)
        except (_kafka().KafkaException, NotInTime) as error:
            raise self._unreachable(error, troubles) from None

    def _unreachable(self, error: BaseException, troubles: list[str]) -> RunbookError:
        settings = client_settings(self.options)
        why = _told(error, settings)
        # The last of them: the first ones are of brokers that were tried and left.
        aside = f" ({_told(troubles[-1], settings)})" if troubles else ""
        return RunbookError(f"the Kafka cluster {mask(self.servers)} does not answer: {why}{aside}")


def _kafka() -> Any:
    """The library, when a cluster is asked: the other commands must not need it."""
    try:
        import confluent_kafka.admin
    except ImportError:
        raise BadInput("asking a Kafka cluster needs confluent-kafka; pip install 'runbook[kafka]'") from None
    return confluent_kafka


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Spark's `kafka.*` options in the words of librdkafka; BadInput where it has none for them."""
    given = {
        name[len("kafka.") :]: value
        for name, value in ((name.lower(), value) for name, value in options.items())
        if name.startswith("kafka.")
    }
    settings = {name: given[name] for name in _AS_IT_IS if name in given}
    settings |= {ours: given[theirs] for theirs, ours in _PEM.items() if theirs in given}
    if "ssl.endpoint.identification.algorithm" in given:
        # Java's word for no check of the host name is an empty one.
        settings["ssl.endpoint.identification.algorithm"] = given["ssl.endpoint.identification.algorithm"] or "none"
    if "ssl.truststore.location" in given:
        _pem_only(given, "ssl.truststore", "ssl.ca.location")
        settings["ssl.ca.location"] = given["ssl.truststore.location"]
    if "ssl.keystore.location" in given:
        if given.get("ssl.keystore.type", "JKS").upper() == "PKCS12":
            settings["ssl.keystore.location"] = given["ssl.keystore.location"]
            settings["ssl.keystore.password"] = given.get("ssl.keystore.password", "")
        else:
            _pem_only(given, "ssl.keystore", "ssl.certificate.location and kafka.ssl.key.location")
            settings |= dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), given["ssl.keystore.location"])
    if "sasl.jaas.config" in given:
        settings |= _login(given["sasl.jaas.config"], given.get("sasl.mechanism", ""))
    return settings


def _pem_only(given: Mapping[str, str], store: str, instead: str) -> None:
    kind = given.get(f"{store}.type", "JKS")
    if kind.upper() != "PEM" and instead.split(" ", maxsplit=1)[0] not in given:
        raise BadInput(
            f"kafka.{store}.location is a {kind} store, which only Java reads; for this tool add kafka.{instead} (PEM)"
        )


def _login(jaas: str, mechanism: str) -> dict[str, str]:
    """What `org…PlainLoginModule required username="u" password="p";` says."""
    module = jaas.split()[0].rpartition(".")[2] if jaas.split() else ""
    words = {m[1]: re.sub(r"\\(.)", r"\1", m[2]) if m[2] is not None else m[3] or m[4] for m in _WORD.finditer(jaas)}
    if module in ("PlainLoginModule", "ScramLoginModule") and {"username", "password"} <= words.keys():
        return {"sasl.username": words["username"], "sasl.password": words["password"]}
    if module == "OAuthBearerLoginModule" and {"clientId", "clientSecret"} <= words.keys():
        return {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": words["clientId"],
            "sasl.oauthbearer.client.secret": words["clientSecret"],
        }
    if module == "Krb5LoginModule" and "keyTab" in words and "principal" in words:
        return {"sasl.kerberos.keytab": words["keyTab"], "sasl.kerberos.principal": words["principal"]}
    raise BadInput(
        f"kafka.sasl.jaas.config ({module or 'empty'}, {mechanism or 'no mechanism'}) is not one this tool can log in with; "
        "PlainLoginModule and ScramLoginModule with username and password are"
    )


def behind(ends: Ends, read: Offsets) -> dict[str, dict[str, int]]:
    """How many offsets of each partition are still to be read; all that it holds where none has been."""
    return {
        topic: {p: last - max(read.get(topic, {}).get(p, 0), ends.earliest[topic][p]) for p, last in parts.items()}
        for topic, parts in ends.latest.items()
    }


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _assigned(text: str) -> dict[str, list[int]]:
    try:
        told = {str(topic): [int(each) for each in numbers] for topic, numbers in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f'the option assign must be JSON such as {{"sensor-raw": [0, 1]}}, not {text!r}') from None
    if not told or not all(told.values()):
        raise BadInput("the option assign names no partition; name one, or subscribe")
    return told


def _offsets_json(text: str, option: str) -> Offsets:
    try:
        return {str(t): {str(int(p)): int(n) for p, n in parts.items()} for t, parts in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f'{option} must be JSON such as {{"sensor-raw": {{"0": 23}}}}, not {text[:100]!r}') from None


def _number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"{option} must be milliseconds since 1970, not {text!r}") from None


def _same_partitions(wanted: Offsets, there: Offsets, option: str) -> None:
    """Spark refuses to start otherwise: a partition that was forgotten would be a silent hole."""
    asked = {(t, p) for t, parts in wanted.items() for p in parts}
    have = {(t, p) for t, parts in there.items() for p in parts}
    for missing, words in ((have - asked, "does not name"), (asked - have, "names")):
        if missing:
            topic, partition = min(missing)
            what = "" if words == "does not name" else ", which there is not"
            raise BadInput(
                f"{option} {words} partition {partition} of {topic}{what}; Spark needs every one and no other"
            )


def _told(error: BaseException | str, settings: Mapping[str, str]) -> str:
    """What librdkafka says, on one line, without the secrets it was given."""
    first = error.args[0] if isinstance(error, BaseException) and error.args else error
    words = first.str() if hasattr(first, "str") else str(first) or "no answer in time"
    for name in ("sasl.password", "ssl.key.password", "ssl.keystore.password", "sasl.oauthbearer.client.secret"):
        if secret := settings.get(name):
            words = words.replace(secret, "***")
    return mask(" ".join(words.split()))[:200]
