"""Messages of the model repository extension; the description of the API comes from them."""

from typing import Literal

from pydantic import BaseModel, StrictBool

from service.protocol.v2_schema import ParameterValue


class IndexBody(BaseModel):
    """What to list: all models, or those alone that serve."""

    ready: StrictBool | None = None


class LoadBody(BaseModel):
    """How to load: Triton's `config` and `file:` are refused, other parameters change nothing."""

    parameters: dict[str, ParameterValue] | None = None


class UnloadBody(BaseModel):
    """How to unload: parameters change nothing, as no model depends on another."""

    parameters: dict[str, ParameterValue] | None = None


class Done(BaseModel):
    """It is done; there is nothing to say."""


class IndexedModel(BaseModel):
    """State of one version of a model, with the reason where not all is well.

    The version is empty where the directory of a model cannot be looked at.
    """

    name: str
    version: str
    state: Literal["READY", "LOADING", "UNLOADING", "UNAVAILABLE"]
    reason: str
