"""What a worker and its supervisor tell each other; each is pickled on a pipe between them."""

from dataclasses import dataclass

from service.tally import Tally


@dataclass(frozen=True, slots=True)
class Loaded:
    """From a worker: its models are loaded, and it takes requests.

    Attributes:
        banner: the first screen of a server that has them.
    """

    banner: str


@dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: it cannot start.

    Attributes:
        reason: as the server ends with it.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Go:
    """To a worker: say that the server is ready to whoever asks."""


@dataclass(frozen=True, slots=True)
class Ready:
    """From a worker: it says so."""


@dataclass(frozen=True, slots=True)
class Leave:
    """To a worker that is to stop soon: another one has your place, take no more connections."""


@dataclass(frozen=True, slots=True)
class Tell:
    """To a worker: say what you have counted.

    Attributes:
        number: of the question.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Told:
    """From a worker: what it has counted.

    Attributes:
        tally: of it.
        number: of the last question that it has seen.
    """

    tally: Tally
    number: int


@dataclass(frozen=True, slots=True)
class Ask:
    """From a worker, right after a `Told`: what have all of us counted?

    Attributes:
        number: of the question, among those of this worker.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Sum:
    """To a worker: what all have counted.

    Attributes:
        tally: of all.
        number: of the `Ask`.
    """

    tally: Tally
    number: int


FromWorker = Loaded | Ready | Failed | Told | Ask
Order = Go | Leave
ToWorker = Order | Tell | Sum
