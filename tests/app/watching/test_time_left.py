"""What is left of a run: by the sizes of steps, and the pace of those that are over."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.app.watching.time_left import FEW, TimeLeft, _by_spark
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_DELETE_ROWS
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Estimate, Step
from tests.review.plans import step


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def steps(count: int, action: Action = ICEBERG_DELETE_ROWS, size: int = 0) -> list[Step]:
    return [step(f"{action.value}/{n}", action=action, estimate=Estimate(bytes=size)) for n in range(count)]


def work(left: TimeLeft, clock: Clock, done: Sequence[Step], seconds: float) -> None:
    for one in done:
        left.begin(one)
        clock.now += seconds
        left.over(one)


def test_there_is_no_estimate_from_a_few_steps() -> None:
    clock, all_steps = Clock(), steps(FEW + 1)
    left = TimeLeft(all_steps, clock=clock)
    work(left, clock, all_steps[: FEW - 1], 2.0)
    assert left.seconds() is None
    work(left, clock, all_steps[FEW - 1 : FEW], 2.0)
    assert left.seconds() == 2.0


def test_each_action_has_its_own_pace() -> None:
    """Deleting takes a second, verifying ten: as many of each are left."""
    clock, deletes, looks = Clock(), steps(10), steps(10, Action.VERIFY_COPY)
    left = TimeLeft([*deletes, *looks], clock=clock)
    work(left, clock, deletes[:5], 1.0)
    work(left, clock, looks[:5], 10.0)
    told = left.seconds()
    assert told is not None
    assert 45 < told < 65


def test_bytes_count() -> None:
    clock, small, large = Clock(), steps(4), steps(1, Action.VERIFY_COPY, size=50_000_000_000)
    left = TimeLeft([*small, *large], clock=clock)
    work(left, clock, small, 3.0)
    told = left.seconds()
    assert told is not None
    assert told > 900


def test_a_step_that_works_has_less_left_and_never_less_than_nothing() -> None:
    clock, all_steps = Clock(), steps(FEW + 1)
    left = TimeLeft(all_steps, clock=clock)
    work(left, clock, all_steps[:FEW], 8.0)
    left.begin(all_steps[FEW])
    clock.now += 6
    assert left.seconds() == 2.0
    clock.now += 60
    assert left.seconds() == 0.0


def test_what_is_held_is_left_for_later_with_what_is_behind_it() -> None:
    """A step that waits or failed, and one that the plan lets begin later, are not worked on now."""
    clock, all_steps = Clock(), steps(FEW + 3)
    first, waiting, later = all_steps[FEW:]
    behind = [step("behind", after=[waiting.id]), step("further", after=["behind"])]
    left = TimeLeft([*all_steps, *behind], held=[later.id], clock=clock)
    left.begin(waiting)
    clock.now += 3600
    left.hold(waiting)
    work(left, clock, all_steps[:FEW], 1.0)
    assert left.seconds() == 1.0, "of the first alone"
    left.begin(waiting)
    assert left.seconds() == 4.0, "it goes on, and what is behind it follows"
    work(left, clock, [waiting, first, *behind], 1.0)
    assert left.seconds() == 0.0
    left.begin(later)
    assert left.seconds() == 1.0


@given(st.lists(st.integers(0, 10**12), min_size=8, max_size=40), st.floats(0.01, 100))
def test_an_even_pace_is_foreseen(sizes: list[int], pace: float) -> None:
    """Steps that take as long as their sizes say, at any pace, leave what is really left."""
    clock = Clock()
    all_steps = [step(f"s/{n}", estimate=Estimate(bytes=size)) for n, size in enumerate(sizes)]
    left = TimeLeft(all_steps, clock=clock)
    for n, one in enumerate(all_steps):
        told = left.seconds()
        if told is not None:
            truth = sum(map(left.size_of, all_steps[n:])) * pace
            assert abs(told - truth) <= truth * 1e-6
        work(left, clock, [one], left.size_of(one) * pace)


def test_verifications_of_what_spark_changed_have_a_pace_of_their_own() -> None:
    """Looking at a table takes ten seconds, at objects of a bucket a tenth of one."""
    clock = Clock()
    acts = [step(f"{c}/1", c, executor="delta" if c < "k" else "s3") for c in "abcdexyz"]
    looks = [step(f"{c}/2", c, action=Action.VERIFY_COPY, executor="verify") for c in "abcdexyz"]
    left = TimeLeft([*acts, *looks], [act.id for act in acts], clock=clock)
    work(left, clock, looks[:5], 10.0)
    told = left.seconds()
    assert told is not None
    assert told < 5, "of none of these kinds, and no work of the engine"
    work(left, clock, looks[5:7], 0.1)
    told = left.seconds()
    assert told is not None
    assert told < 1


def test_what_was_done_before_is_not_left() -> None:
    clock, all_steps = Clock(), steps(FEW + 4)
    left = TimeLeft(all_steps, [one.id for one in all_steps[:3]], clock=clock)
    work(left, clock, all_steps[3 : 3 + FEW], 2.0)
    assert left.seconds() == 2.0


class Walked(TimeLeft):
    """As it is defined, step by step, each time anew: slow and plain."""

    def walked(self) -> float | None:
        if self._over < FEW:
            return None
        held, open_ = set(self._held), list[Step]()
        for one in self._left.values():
            if one.id in held or not held.isdisjoint(one.depends_on):
                held.add(one.id)
            else:
                open_.append(one)
        left = 0.0
        for kind in {self._kind(one) for one in open_}:
            mine = [one for one in open_ if self._kind(one) == kind]
            mean = sum(map(self.size_of, mine)) / len(mine)
            pace = self._pace(_by_spark(kind))
            own = (self._took.get(kind, 0.0) + pace * mean) / (self._sizes.get(kind, 0.0) + mean)
            for one in mine:
                worked = self._clock() - self._begun[one.id] if one.id in self._begun else 0.0
                left += max(0.0, own * self.size_of(one) - worked)
        return left


@given(st.data())
def test_the_sums_are_those_of_all_steps(data: st.DataObject) -> None:
    """Whatever is begun, done, held and let go, in any order."""
    clock, count = Clock(), data.draw(st.integers(1, 12))
    made: list[Step] = []
    for n in range(count):
        after = data.draw(
            st.lists(st.sampled_from([f"s{i}" for i in range(n)]), max_size=3, unique=True) if n else st.just([])
        )
        act = data.draw(st.sampled_from([ICEBERG_DELETE_ROWS, Action.VERIFY_COPY]))
        size = data.draw(st.integers(0, 10**9))
        made.append(step(f"s{n}", after=after, action=act, estimate=Estimate(bytes=size)))
    some = st.sets(st.sampled_from([one.id for one in made]))
    left = Walked(made, data.draw(some), data.draw(some), clock=clock)
    for _ in range(data.draw(st.integers(1, 30))):
        deed = data.draw(st.sampled_from([left.begin, left.over, left.hold]))
        deed(data.draw(st.sampled_from(made)))
        clock.now += data.draw(st.floats(0.1, 50))
        told, truth = left.seconds(), left.walked()
        assert (told is None) == (truth is None)
        assert told is None or truth is None or abs(told - truth) <= 1e-6 * max(1.0, truth)


def test_a_plan_of_many_steps_is_no_work() -> None:
    clock, all_steps = Clock(), [step(f"s{n}", after=[f"s{n - 1}"] if n % 4 else []) for n in range(4000)]
    looked = 0

    class Counting(TimeLeft):
        def size_of(self, step: Step) -> float:
            nonlocal looked
            looked += 1
            return super().size_of(step)

    left = Counting(all_steps, clock=clock)
    for one in all_steps:
        left.begin(one)
        left.seconds()
        clock.now += 1
        left.over(one)
    assert looked < 8 * len(all_steps)
