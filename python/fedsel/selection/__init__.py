"""The coordinator's side: loss, search and the chosen federation."""

from fedsel.selection.attributes import ClientAttributes
from fedsel.selection.constraints import Constraints, Quota
from fedsel.selection.denoising import denoise
from fedsel.selection.loss import FederationLoss, FederationState
from fedsel.selection.pareto import ParetoFront, ParetoPoint, pareto_front
from fedsel.selection.prepare import prepare
from fedsel.selection.prepared_file import PreparedFile
from fedsel.selection.result import Certificate, ChainResult, Member, RunnerUp, Selection, SizeResult
from fedsel.selection.schedule import GeometricSchedule, LogarithmicSchedule, Schedule
from fedsel.selection.select import select
from fedsel.selection.weights import PRESETS, Components, LossWeights

__all__ = [
    "PRESETS",
    "Certificate",
    "ChainResult",
    "ClientAttributes",
    "Components",
    "Constraints",
    "FederationLoss",
    "FederationState",
    "GeometricSchedule",
    "LogarithmicSchedule",
    "LossWeights",
    "Member",
    "ParetoFront",
    "ParetoPoint",
    "PreparedFile",
    "Quota",
    "RunnerUp",
    "Schedule",
    "Selection",
    "SizeResult",
    "denoise",
    "pareto_front",
    "prepare",
    "select",
]
