"""The first and the last step of a run: keys are opened, and their views dropped."""

from __future__ import annotations

from executors.context import ExecutionContext
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress


class KeysExecutor:
    """STAGE_KEYS and DROP_KEYS. Views belong to a session, so a resumed run makes its own when it needs them."""

    name = "keys"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when a key set cannot be opened or is empty."""
        for name in step.parameters.get("key_sets", []):
            try:
                values = self._ctx.keyring.key_set(name).values
            except KeyError:
                raise RunError(f"the sealed manifest has no key set `{name}`", todo="make the plan again") from None
            if not values:
                raise RunError(f"the key set `{name}` is empty, so it would find no person", todo="make the plan again")

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Open the sets, or drop the views."""
        if step.action is Action.DROP_KEYS:
            dropped = len(self._ctx.views)
            self._ctx.drop_views()
            return Outcome({"views_dropped": dropped})
        sets = step.parameters["key_sets"]
        return Outcome({"key_sets": len(sets), "values": sum(len(self._ctx.keyring.key_set(n).values) for n in sets)})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Views are gone after the drop; sets open before it."""
        if step.action is Action.DROP_KEYS:
            return Check(not self._ctx.views, tuple(self._ctx.views))
        self.check(step, copy)
        return Check(True)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Opening and dropping leave nothing behind outside the process."""
        return Progress.NOT_STARTED
