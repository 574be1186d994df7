"""What the file system says of a version's files: enough to see that none has changed.

Reading them all at each look would cost as much as loading them.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeAlias

from model.contract import CONFIG_FILE, MANIFEST_FILE
from service.engine.directories import resolve
from service.engine.manifest import Manifest, ManifestError

# Within one tick of the file system's clock a file may change twice with the same time; 2 s is
# the longest tick in use (FAT).
SETTLING_NS: Final = 2_000_000_000

Facts: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Where a version's files really are, and device, inode, size and times of each.

    Attributes:
        places: of the version, and of the model.
        files: facts by name; none for a file that is missing.
    """

    places: tuple[Path, Path]
    files: tuple[tuple[str, Facts | None], ...]

    @classmethod
    def take(cls, directory: Path, root: Path) -> Self:
        """Look at the files of a version.

        Raises:
            LinkError: if its directory leads out of `root`.
            OSError: if its directory is absent.
        """
        version, model = resolve(root, directory), resolve(root, directory.parent)
        # The facts of the manifest come first: a later one may list other files.
        files = [look_at(model / CONFIG_FILE), look_at(version / MANIFEST_FILE)]
        try:
            names = sorted(Manifest.read(version).files)
        except ManifestError:
            names = []
        files += [look_at(version / name) for name in names]
        return cls((version, model), tuple(files))

    def is_settled(self) -> bool:
        """Whether every change to come will be seen; not while the last one is very young."""
        newest_ns = max((facts[-1] for _, facts in self.files if facts), default=0)
        # A time to come is as good: the clock was set back since, and will be there once at most.
        return abs(time.time_ns() - newest_ns) > SETTLING_NS


def look_at(path: Path) -> tuple[str, Facts | None]:
    """Name and facts of a file, through links."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return path.name, None
    # The time of change comes along: copying tools set that of modification back.
    return path.name, (
        found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns,
    )  # fmt: skip
