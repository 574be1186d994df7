"""Time the frames of the page while a hand moves a picture of 2048 x 2048 weights.

Each round asks every page in turn for every gesture, `nothing` among them: the control, since what
else the machine does delays frames, too.
"""

import argparse
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, CDPSession, Page, ViewportSize, sync_playwright

from benchmarks.server import serve

GESTURES: Final = ("nothing", "zoom", "pan", "hover", "colour")
RATIOS: Final = (1, 2)  # device pixels in a CSS pixel
SCRIPT: Final = Path(__file__).parent / "gestures.js"
OPTIONS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WINDOW: Final[ViewportSize] = {"width": 1440, "height": 900}
HEADS, SIDE = 4, 2048
OPEN_WEIGHTS: Final = """async ([heads, side]) => {
    const { encodeSafetensors } = await import("./page/formats/safetensors.js");
    const data = new Float32Array(heads * side * side).map(() => Math.random() ** 8);
    const tensor = { dtype: "F32", shape: [heads, side, side], data };
    const bytes = encodeSafetensors(new Map([["attention_weights", tensor]]));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], "large.safetensors"));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
}"""


@dataclass(frozen=True)
class Tab:
    """A page with weights in it.

    Attributes:
        page: at rest.
        session: that counts its work, from now on.
    """

    page: Page
    session: CDPSession

    def read_work_ms(self) -> float:
        """The time of all tasks of the main thread so far; Chrome's `Performance.getMetrics`."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


Figures = dict[tuple[str, str], tuple[list[float], list[float]]]


def main() -> None:
    """Print a line for each gesture of each page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument(
        "pages", nargs="*", metavar="NAME=URL", help="else a server of this checkout"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--ratios", type=int, nargs="*", default=RATIOS)
    options = parser.parse_args()
    named = dict(each.split("=", 1) for each in options.pages)
    with serve_pages(named) as urls, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        for ratio in options.ratios:
            figures = measure(browser, urls, ratio, options.rounds, options.frames)
            for (name, gesture), (gaps_ms, work_ms) in figures.items():
                show(f"{ratio}x  {name:8}{gesture:8}", gaps_ms, work_ms)


@contextmanager
def serve_pages(named: dict[str, str]) -> Iterator[dict[str, str]]:
    """The pages that were named, or that of a server of our own."""
    if named:
        yield named
        return
    with serve() as server:
        yield {"here": server.url}


def measure(
    browser: Browser, urls: dict[str, str], ratio: int, rounds: int, frames: int
) -> Figures:
    """Milliseconds between frames, and of the main thread's work in one, by page and gesture."""
    tabs = {name: open_tab(browser, url, ratio) for name, url in urls.items()}
    figures: Figures = {(name, gesture): ([], []) for name in tabs for gesture in GESTURES}
    for _ in range(rounds):
        for gesture in GESTURES:
            for name, tab in tabs.items():
                tab.page.bring_to_front()
                start_ms = tab.read_work_ms()
                gaps_ms = tab.page.evaluate("(each) => perform(...each)", [gesture, frames])
                figures[name, gesture][0].extend(gaps_ms)
                figures[name, gesture][1].append((tab.read_work_ms() - start_ms) / frames)
    for tab in tabs.values():
        tab.page.context.close()
    return figures


def open_tab(browser: Browser, url: str, ratio: int) -> Tab:
    """Open a page, and weights in it."""
    context = browser.new_context(viewport=WINDOW, device_scale_factor=ratio)
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#cells[data-plot]")
    page.evaluate(OPEN_WEIGHTS, [HEADS, SIDE])
    page.wait_for_selector(f'#head-size:text-matches("{SIDE}")', timeout=120_000)
    page.wait_for_timeout(5000)
    page.evaluate(SCRIPT.read_text())
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    return Tab(page, session)


def show(label: str, gaps_ms: list[float], work_ms: list[float]) -> None:
    """One line."""
    median_ms, p95_ms = statistics.median(gaps_ms), statistics.quantiles(gaps_ms, n=20)[-1]
    late = sum(gap_ms > 25 for gap_ms in gaps_ms) / len(gaps_ms)
    sys.stdout.write(
        f"{label}  frame {median_ms:6.1f} ms, p95 {p95_ms:6.1f}, late {late:4.0%}"
        f"  work {statistics.median(work_ms):6.1f} ms\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
