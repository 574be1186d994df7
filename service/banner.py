"""The first screen: what runs where, and one line to try it."""

import json

from service.state import State

WIDEST_LITERAL = 16


def render_banner(state: State, host: str, port: int) -> str:
    """Version, models, provider, addresses, and a curl line that works as it stands."""
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    root = f"{url}{state.settings.root_path}"
    models = [state.repository.get(name) for name in state.repository.names]
    lines = [f"Limelight {state.version}"]
    lines += [
        f"  model     {m.name} version {m.version}: d_model {m.spec.d_model}, "
        f"{m.spec.num_heads} heads, on {m.provider}"
        for m in models
    ]
    lines += [
        f"  page      {root}/",
        f"  docs      {root}/docs",
        f"  try       {render_try(state, root)}",
    ]
    return "\n".join(lines)


def render_try(state: State, root: str) -> str:
    """A shell line that posts two tokens to the first model."""
    name = state.repository.names[0]
    spec = state.repository.get(name).spec
    query = f"?model={name}" if len(state.repository.names) > 1 else ""
    url = f"'{root}/v1/attention{query}'"
    tensors = {"query": spec.d_model}
    if spec.kdim != spec.d_model:
        tensors["key"] = spec.kdim
    if spec.vdim != spec.kdim:
        tensors["value"] = spec.vdim
    if max(tensors.values()) <= WIDEST_LITERAL:
        body = json.dumps({n: make_tokens(width) for n, width in tensors.items()})
        return f"curl -s {url} -d '{body}'"
    parts = ", ".join(f'"{n}": [[0.5] * {width}] * 2' for n, width in tensors.items())
    return f"python3 -c 'import json; print(json.dumps({{{parts}}}))' | curl -s {url} -d @-"


def make_tokens(width: int) -> list[list[int]]:
    """Two tokens of `width` numbers."""
    return [[int(column == row) for column in range(width)] for row in range(2)]
