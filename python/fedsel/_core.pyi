from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

__version__: str

_Progress = Callable[[int, int], object] | None

class SearchResult(TypedDict):
    best: list[tuple[float, list[int]]]
    evaluations: int
    stop_reason: Literal["completed", "time limit", "interrupted"]

class Enumeration(SearchResult):
    complete: bool

class ModelCertification(SearchResult):
    outcome: Literal["certified", "too wide", "too long", "stopped"]
    enumerated: int
    bounded: int
    prefixes: int
    compared: int
    random_error: float
    best_error: float
    band: float

class BranchingStep(SearchResult):
    finished: bool
    applies: bool
    optimal: bool
    bound: float
    nodes: int

class Descent(SearchResult):
    certified: list[int]

class Annealing(SearchResult):
    chains: list[tuple[float, list[int], int, list[float]]]

class FoundSubgroups(TypedDict):
    found: list[tuple[float, list[int], int, int]]
    evaluations: int
    stop_reason: Literal["completed", "time limit", "interrupted"]

def rake_tables(
    cells: npt.NDArray[np.float64],
    margins: npt.NDArray[np.float64],
    domain: Sequence[int],
    pairs: Sequence[tuple[int, int]],
) -> npt.NDArray[np.float64]: ...
def round_tables(
    cells: npt.NDArray[np.float64],
    margins: npt.NDArray[np.float64],
    totals: Sequence[int],
    domain: Sequence[int],
    pairs: Sequence[tuple[int, int]],
) -> npt.NDArray[np.int32]: ...

class LossModel:
    def __init__(
        self,
        counts: npt.NDArray[np.int32],
        tables: Sequence[tuple[int, int, int, int, int]],
        weights: Sequence[float],
        level: str = "auto",
    ) -> None: ...
    @property
    def clients(self) -> int: ...
    @property
    def consistent(self) -> bool: ...
    @property
    def level(self) -> str: ...
    def reweighted(self, weights: Sequence[float]) -> LossModel: ...
    def information(self, members: Sequence[int]) -> npt.NDArray[np.float64]: ...
    def components(self, federations: npt.NDArray[np.uint32], threads: int = 1) -> npt.NDArray[np.float64]: ...

_Tables = Sequence[tuple[int, int, int, int, int]]

def tables_agree(counts: npt.NDArray[np.int32], tables: _Tables) -> bool: ...
def row_stride(tables: _Tables, consistent: bool) -> int: ...
def lay_out(counts: npt.NDArray[np.int32], tables: _Tables, consistent: bool) -> npt.NDArray[np.int32]: ...
def map_model(
    path: str,
    offset: int,
    clients: int,
    tables: _Tables,
    consistent: bool,
    weights: Sequence[float],
    level: str = "auto",
) -> LossModel: ...

class Problem:
    def __init__(
        self,
        model: LossModel,
        k: int,
        *,
        fixed: Sequence[int],
        free: Sequence[int],
        constraints: Sequence[tuple[Sequence[int], int, int]],
        fallback: Sequence[int],
    ) -> None: ...

class Branching:
    def __init__(
        self,
        problem: Problem,
        *,
        known: Sequence[int],
        gaps: Sequence[float],
        most_nodes: int,
        keep: int,
        threads: int,
    ) -> None: ...
    def advance(self, *, most: int, time_limit: float, progress: _Progress) -> BranchingStep: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...

class FederationState:
    def __init__(self, model: LossModel, members: Sequence[int]) -> None: ...
    @property
    def members(self) -> list[int]: ...
    def swap(self, out: int, in_: int) -> None: ...
    def components(self) -> npt.NDArray[np.float64]: ...

def count_marginals(
    columns: Sequence[npt.NDArray[np.generic]], domain: Sequence[int], sets: Sequence[Sequence[int]]
) -> npt.NDArray[np.int64]: ...
def levels() -> list[str]: ...
def binomial(n: int, k: int) -> int: ...
def swap_gaps(problem: Problem, *, count: int, seed: int) -> npt.NDArray[np.float64]: ...
def enumerate(
    problem: Problem,
    *,
    keep: int,
    threads: int,
    time_limit: float,
    progress: _Progress,
    first: int = 0,
    last: int = ...,
    known: Sequence[tuple[float, Sequence[int]]] = (),
) -> Enumeration: ...
def enumeration_blocks(problem: Problem) -> int: ...
def certify(
    problem: Problem,
    *,
    known: Sequence[int],
    sample: int,
    most: int,
    most_prefixes: int,
    keep: int,
    threads: int,
    seed: int,
    time_limit: float,
    progress: _Progress,
) -> ModelCertification: ...
def exchange(
    problem: Problem,
    *,
    start: Sequence[int],
    size: int,
    keep: int,
    threads: int,
    time_limit: float,
    progress: _Progress,
) -> Descent: ...
def expand(
    problem: Problem,
    *,
    random_starts: int,
    keep: int,
    threads: int,
    seed: int,
    time_limit: float,
    progress: _Progress,
) -> Descent: ...
def greedy(problem: Problem, *, keep: int, seed: int, time_limit: float, progress: _Progress) -> Descent: ...
def descend(
    problem: Problem,
    *,
    starts: Sequence[Sequence[int]],
    random_starts: int,
    keep: int,
    threads: int,
    seed: int,
    time_limit: float,
    progress: _Progress,
) -> Descent: ...
def anneal(
    problem: Problem,
    *,
    temperatures: Sequence[float],
    evaluations_per_level: int,
    max_evaluations: int,
    chains: int,
    keep: int,
    threads: int,
    seed: int,
    initial_states: Sequence[Sequence[int]],
    screen: bool = True,
    time_limit: float,
    progress: _Progress,
) -> Annealing: ...
def anneal_quadratic(
    problem: Problem,
    *,
    temperatures: Sequence[float],
    evaluations_per_level: int,
    max_evaluations: int,
    chains: int,
    keep: int,
    threads: int,
    seed: int,
    initial_states: Sequence[Sequence[int]],
    time_limit: float,
    progress: _Progress,
) -> Descent: ...
def temper(
    problem: Problem,
    *,
    temperatures: Sequence[float],
    evaluations_per_round: int,
    rounds: int,
    keep: int,
    threads: int,
    seed: int,
    initial_states: Sequence[Sequence[int]],
    time_limit: float,
    progress: _Progress,
) -> Annealing: ...

class BitTable:
    def __init__(
        self,
        columns: Sequence[npt.NDArray[np.generic]],
        conditions: Sequence[tuple[int, Sequence[tuple[int, int]]]],
        outcomes: npt.NDArray[np.int64],
        *,
        unit: float = 1.0,
        threads: int = 1,
        level: str = "auto",
    ) -> None: ...
    @property
    def conditions(self) -> int: ...
    @property
    def digits(self) -> int: ...

class SubgroupQuality:
    def __init__(self, measure: str, *, exponent: float, direction: str, least_rows: int, most_rows: int) -> None: ...

def subgroup_beam(
    table: BitTable,
    quality: SubgroupQuality,
    *,
    depth: int,
    width: int,
    keep: int,
    floor: float,
    diversity: str,
    alpha: float,
    threads: int,
    time_limit: float,
    progress: _Progress,
) -> FoundSubgroups: ...
def subgroup_exact(
    table: BitTable,
    quality: SubgroupQuality,
    *,
    depth: int,
    keep: int,
    floor: float,
    threads: int,
    time_limit: float,
    progress: _Progress,
) -> FoundSubgroups: ...
def subgroup_marginals(
    columns: Sequence[npt.NDArray[np.generic]],
    conditions: Sequence[Sequence[int]],
    outcomes: npt.NDArray[np.uint8],
    quality: SubgroupQuality,
    *,
    depth: int,
    keep: int,
    floor: float,
    threads: int,
    time_limit: float,
    progress: _Progress,
) -> FoundSubgroups: ...
def subgroup_values(
    table: BitTable, quality: SubgroupQuality, descriptions: Sequence[Sequence[int]]
) -> list[tuple[float, int, int]]: ...
def select_diverse(
    table: BitTable,
    candidates: Sequence[tuple[float, Sequence[int], int]],
    *,
    count: int,
    diversity: str,
    alpha: float,
    threads: int,
) -> list[int]: ...
