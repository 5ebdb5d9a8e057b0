"""The NameNodes of one nameservice: which of them is asked, and when a request may go to another one.

The rules are those of Hadoop's own clients (`RetryPolicies.FailoverOnNetworkExceptionRetry`): what a standby refused
was not done, so that another NameNode may be asked. If no answer came, only a request that changes nothing is repeated:
nobody knows what became of the others, which the run that is resumed finds out.

Two clusters under one name would be worse than no answer: what is erased in one would be read in the other. So no
NameNode is asked anything before its block pool is known to be that of the others. An observer is never asked: it may
answer with what was there a while ago.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from time import monotonic, sleep

from pii_tracer.common.http import NoAnswer

Send = Callable[[str], bytes]
"""Sends a request to the NameNode at an address. Raises `NoAnswer`."""
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds between rounds in which no NameNode was active: a failover may take a minute."""
_FRESH = 10.0
"""Seconds for which a NameNode is taken to be what its web server said: an administrator can make it an observer."""
_NOT_ACTIVE = frozenset({"StandbyException", "ObserverRetryOnActiveException", "RetriableException"})
"""With what a NameNode refuses that another one may do: it is a standby, or it has just been started."""
_BEANS = "/jmx?get=Hadoop:service=NameNode,name="
_BLOCK_POOL, _STATE = "NameNodeInfo::BlockPoolId", "NameNodeStatus::State"
_CODE = re.compile(r"[A-Za-z]{1,80}")


class Unfit(NoAnswer):
    """No NameNode may be asked, or what became of a request is unknown. code: in place of HDFS's own; todo: as of
    errors.
    """

    def __init__(self, code: str, todo: str) -> None:
        super().__init__(code)
        self.todo = todo


class _OfAll(Unfit):
    """Why no NameNode of a nameservice may be asked."""


@dataclass
class _Memory:
    """What this process knows of some NameNodes. last: which one answered last. fit: those that may be asked, and since
    when that is known.

    pool: their block pool. patient: whether it is worth waiting until one is active.
    """

    last: str
    pool: str
    fit: dict[str, float] = field(default_factory=dict)
    patient: bool = True
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, order=True)
class NameNodes:
    """addresses: of their WebHDFS, as `http://host:port`. block_pool: which they must have, where the owner says it."""

    addresses: tuple[str, ...]
    block_pool: str = ""

    def asked(self, send: Send, look: Send, *, changes: bool) -> bytes:
        """The answer of the active NameNode. look: asks for a path of its web server, below an address.

        changes: whether the request changes something.

        Raises:
            NoAnswer: refused, or none is active, or they are not known to be of one cluster (`Unfit`).
        """
        if len(self.addresses) == 1 and not self.block_pool:
            return send(self.addresses[0])
        memory = _memory(self)
        pauses = iter(_PAUSES)
        while True:
            refused = self._round(memory, send, look, changes=changes)
            if isinstance(refused, bytes):
                return refused
            busy = any(code_of(error) in _NOT_ACTIVE for error in refused)
            pause = next(pauses, None) if busy and memory.patient else None
            if pause is None:
                memory.patient = False
                raise _none_active(refused)
            sleep(pause)

    def _round(self, memory: _Memory, send: Send, look: Send, *, changes: bool) -> bytes | list[NoAnswer]:
        """The answer, or why each of the NameNodes gave none."""
        refused: list[NoAnswer] = []
        for address in sorted(self.addresses, key=lambda one: one != memory.last):
            sent = False
            try:
                self._refuse_unfit(memory, address, look)
                sent = True
                answer = send(address)
            except NoAnswer as error:
                if isinstance(error, _OfAll):
                    raise
                if sent and not _elsewhere(error, changes=changes):
                    raise _in_doubt() if changes and error.status is None else error from None
                memory.fit.pop(address, None)
                refused.append(error)
            else:
                memory.last, memory.patient = address, True
                return answer
        return refused

    def _refuse_unfit(self, memory: _Memory, address: str, look: Send) -> None:
        """Raises NoAnswer: this NameNode may not be asked; `_OfAll`: none of them may."""
        now = monotonic()
        if now - memory.fit.get(address, -_FRESH) < _FRESH:
            return
        with memory.lock:
            if not memory.pool:
                memory.pool = self._common_pool(look)
            if _told(look(f"{address}{_BEANS}{_BLOCK_POOL}"), "BlockPoolId") != memory.pool:
                raise _of_two_clusters()
            if _told(look(f"{address}{_BEANS}{_STATE}"), "State") == "observer":
                raise Unfit("ObserverNameNode", "the NameNode is an observer: use the active NameNode instead")
            memory.fit[address] = now

    def _common_pool(self, look: Send) -> str:
        """The block pool of them all. Raises NoAnswer: one refuses; `_OfAll`: one does not tell it, or has another."""
        try:
            pools = {_told(look(f"{address}{_BEANS}{_BLOCK_POOL}"), "BlockPoolId") for address in self.addresses}
        except NoAnswer as error:
            if error.status is not None or not str(error).startswith("does not") or "SSL" in str(error):
                raise  # it answers, or would: what it refuses says more
            raise _OfAll(
                "UnknownBlockPool",
                "one of the NameNodes under `hdfs[].webhdfs` does not report its cluster: start the NameNode, or set "
                "`hdfs[].block_pool` (a NameNode's web page shows its Block Pool ID)",
            ) from None
        if len(pools) != 1:
            raise _of_two_clusters()
        return pools.pop()


@cache
def _memory(name_nodes: NameNodes) -> _Memory:
    return _Memory(name_nodes.addresses[0], name_nodes.block_pool)


def code_of(error: NoAnswer) -> str:
    """The class of the Java exception that a server refused with; its message is never looked at."""
    try:
        code = json.loads(error.said)["RemoteException"]["exception"]
    except (ValueError, KeyError, TypeError):
        code = None
    if isinstance(code, str) and _CODE.fullmatch(code):
        return code
    return f"HTTP {error.status}" if str(error).startswith("refused") else str(error)


def _elsewhere(error: NoAnswer, *, changes: bool) -> bool:
    """Whether another NameNode may be asked the same."""
    return code_of(error) in _NOT_ACTIVE or error.unsent or (error.status is None and not changes)


def _told(answer: bytes, attribute: str) -> str:
    """An attribute of a NameNode's bean. Raises NoAnswer: it does not tell it, as one that has just been started."""
    try:
        told = json.loads(answer)["beans"][0][attribute]
    except (ValueError, KeyError, TypeError, IndexError):
        told = None
    if not isinstance(told, str) or not told:
        raise NoAnswer("does not report which NameNode it is")
    return told


def _none_active(refused: Sequence[NoAnswer]) -> NoAnswer:
    """The error where no NameNode answered: a refusal says more than silence."""
    codes = {code_of(error): error for error in refused}
    if "RetriableException" in codes:
        return codes["RetriableException"]
    if _NOT_ACTIVE & codes.keys():
        return Unfit(
            "NoActiveNameNode",
            "make one of the NameNodes active (`hdfs haadmin -getAllServiceState` shows them), or add the active one"
            " to `hdfs[].webhdfs`",
        )
    return max(refused, key=lambda error: (isinstance(error, Unfit), error.status or 0))


def _in_doubt() -> Unfit:
    return Unfit("UnknownOutcome", "run `pii-tracer resume`, which first checks whether the request was done")


def _of_two_clusters() -> Unfit:
    return _OfAll(
        "OtherBlockPool",
        "the NameNodes under `hdfs[].webhdfs` belong to different nameservices, or `hdfs[].block_pool` belongs to a "
        "different one: correct the estate file",
    )
