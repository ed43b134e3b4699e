"""A test double that sees in which order a call charges, reads rows and draws."""

from collections.abc import Iterator
from contextlib import contextmanager

from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms import choice


@contextmanager
def order_of_events(monkeypatch, rows=()):
    """Record "charge", "read" and "draw" in a list while the block runs.

    `rows` lists (object, attribute) pairs whose call means that rows are read; if the call returns
    an iterator, rows are read when it is first advanced.
    """
    log = []

    def reading(honest):
        def advance(items):
            log.append("read")
            yield from items

        def call(*args, **kwargs):
            result = honest(*args, **kwargs)
            if isinstance(result, Iterator):
                return advance(result)
            log.append("read")
            return result

        return call

    def recording(event, honest):
        def call(*args, **kwargs):
            log.append(event)
            return honest(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", recording("charge", Ledger.charge))
        # Built for a scale before the charge, and again for the draw: only its call is a draw.
        noisy_min = choice._noisy_min

        class Measurement:
            def __init__(self, scale, mechanism):
                self.inner = noisy_min(scale, mechanism)
                self.map = self.inner.map

            def __call__(self, scores):
                log.append("draw")
                return self.inner(scores)

        patch.setattr(choice, "_noisy_min", Measurement)
        patch.setattr(choice, "laplace_noise", recording("draw", choice.laplace_noise))
        for owner, name in rows:
            patch.setattr(owner, name, reading(getattr(owner, name)))
        yield log
