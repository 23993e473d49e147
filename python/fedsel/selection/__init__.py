"""The coordinator's side: loss, search and the chosen federation."""

from fedsel.selection.denoise import denoise
from fedsel.selection.loss import FederationLoss, FederationState
from fedsel.selection.result import Certificate, ChainResult, Member, RunnerUp, Selection
from fedsel.selection.schedule import GeometricSchedule, LogarithmicSchedule, Schedule
from fedsel.selection.select import select
from fedsel.selection.weights import Components, LossWeights

__all__ = [
    "Certificate",
    "ChainResult",
    "Components",
    "FederationLoss",
    "FederationState",
    "GeometricSchedule",
    "LogarithmicSchedule",
    "LossWeights",
    "Member",
    "RunnerUp",
    "Schedule",
    "Selection",
    "denoise",
    "select",
]
