"""The first screen: what runs where, and one line to try it."""

import json

from service.examples import find_widths, make_tokens
from service.state import State

WIDEST_LITERAL = 16


def render_banner(state: State, host: str, port: int, metrics_port: int | None = None) -> str:
    """Version, models, provider, addresses, and a curl line that works as it stands."""
    origin = render_origin(host)
    root = f"{origin}:{port}{state.settings.root_path}"
    models = [state.repository.get(name) for name in state.repository.names]
    lines = [f"Limelight {state.version}"]
    lines += [
        f"  model     {m.name} version {m.version}: d_model {m.spec.d_model}, "
        f"{m.spec.num_heads} heads, on {m.provider}"
        for m in models
    ] or ["  model     none yet"]
    lines += [f"  device    {state.loader.device}"] if state.loader.device else []
    lines += [f"  workers   {workers}"] if (workers := state.settings.workers) > 1 else []
    lines += [
        f"  page      {root}/",
        f"  docs      {root}/docs",
    ]
    lines += [f"  metrics   {origin}:{metrics_port}/metrics"] if metrics_port else []
    lines += [f"  try       {render_try(state, root)}"]
    return "\n".join(lines)


def render_origin(host: str) -> str:
    """Scheme and host of an address to go to; a wildcard listens everywhere, and is none."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not a bind
    return f"http://[{host}]" if ":" in host else f"http://{host}"


def render_try(state: State, root: str) -> str:
    """A shell line that posts two tokens to the first model; without one, asks for the index."""
    if not state.repository.names:
        return f"curl -s -X POST '{root}/v2/repository/index'"
    name = state.repository.names[0]
    spec = state.repository.get(name).spec
    query = f"?model={name}" if len(state.repository.names) > 1 else ""
    url = f"'{root}/v1/attention{query}'"
    widths = find_widths(spec)
    if max(widths.values()) <= WIDEST_LITERAL:
        body = json.dumps({name: make_tokens(width) for name, width in widths.items()})
        return f"curl -s {url} -d '{body}'"
    parts = ", ".join(f'"{name}": [[0.5] * {width}] * 2' for name, width in widths.items())
    return f"python3 -c 'import json; print(json.dumps({{{parts}}}))' | curl -s {url} -d @-"
