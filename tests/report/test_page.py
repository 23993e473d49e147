"""Reports as pages and files."""

from __future__ import annotations

import html
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import fedsel
from conftest import require_extra
from fedsel import Pool, Schema, Variable, Workload, select
from fedsel.datasets.example import load_example
from fedsel.errors import FedselError, MissingExtraError
from fedsel.privacy.calibration import plan_noise
from fedsel.report import check_report, gather, render, write_report
from fedsel.report.wording import MINUS
from fedsel.selection import Constraints
from reference import made_pool

require_extra("jinja2", "report")

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}
HOSTILE = (
    '<script>alert("x")</script>',
    "مستشفى القدس",
    "Zürich & Söhne",
    "'><img src=x onerror=y>",
    "病院",
    "{{ 7*7 }}",
)


class Page(HTMLParser):
    """Checks nesting and collects what tests ask about."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.tags, self.attributes, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        self.problems += [f"left open: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if len({name for name, _ in attrs}) != len(attrs):
            self.problems.append(f"attribute given twice: {tag}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"closed {tag}, open {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


def page_of(selection, pool, **options):
    command = options.pop("command", None)
    return render(gather(selection, pool, **options), command=command)


def check(text):
    page = Page(text)
    assert page.problems == []
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    for name in ("aria-labelledby",):
        assert set(page.values(name)) <= set(ids)
    assert {value[1:] for value in page.values("href")} <= set(ids)  # links within the page only
    assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form", "video", "audio"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset", "action")]
    assert "@import" not in text
    assert "url(" not in text
    assert not re.search(r"""(href|src)\s*=\s*["']?\s*(https?:|//)""", text)
    assert {"header", "main", "nav", "footer", "h1"} <= set(page.tags)
    assert page.tags.count("main") == page.tags.count("h1") == 1
    for tag, name, value in page.attributes:
        if tag == "svg" and name == "aria-hidden":
            assert value == "true"
    return page


@pytest.fixture(scope="module")
def noisy():
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=1.0), seed=11)


@pytest.fixture(scope="module")
def chosen(noisy):
    return select(noisy, 10, certificate="none")


def test_a_page_holds_what_it_promises(noisy, chosen):
    evidence = gather(chosen, noisy, seed=4)
    text = render(evidence, command="fedsel select --example acs-income -k 10")
    page = check(text)
    words = page.words
    for name in chosen.names:
        assert f" {name} " in words
    assert "10 of 46 clients" in words
    assert f"{chosen.loss:.4f}".replace("-", MINUS) in words
    assert chosen.certificate.statement in words
    assert chosen.privacy.sentence in words
    assert "Experiment only" in words
    assert "fedsel select --example acs-income -k 10" in words
    assert noisy.schema.fingerprint in words
    assert evidence.digest in words
    assert f"fedsel {fedsel.__version__}" in words
    assert f"\N{GREEK SMALL LETTER SIGMA} = {noisy.scale.max():.2f}" in words
    assert "of those evaluated" in words
    assert sum(map(int, page.values("data-count"))) == 1000
    for pair in evidence.information.pairs:
        assert f"{pair.federation:.4f}" in words
    for item in evidence.contributions.examined:
        assert f"{item.without:.4f}".replace("-", MINUS) in words
        assert f"{item.replaced:.4f}".replace("-", MINUS) in words


def test_annealing_shows_its_chains(noisy):
    selection = select(noisy, 4, search="anneal", certificate="none", chains=3)
    text = page_of(selection, noisy)
    page = check(text)
    assert page.tags.count("polyline") == 3
    assert "Loss in bits of each chain" in page.words


def test_names_are_escaped_and_isolated():
    base = made_pool(1, clients=len(HOSTILE), domain=[2, 3, 2])
    schema = Schema(
        name="<b>schema</b>",
        variables=(
            Variable(name="<i>sex</i>", role="sensitive", categories=(0, 1)),
            Variable(name="نوع & co", categories=("<u>", "b", "c")),
            Variable(name="\"out'", role="target", categories=(0, 1)),
        ),
    )
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    pool = Pool(**fields | {"clients": HOSTILE, "schema": schema, "workload": Workload.pairs(schema)})
    rules = Constraints(include=(HOSTILE[0],))
    selection = select(pool, 3, constraints=rules)
    text = page_of(selection, pool, constraints=rules, command="fedsel select '<script>'")
    page = check(text)
    assert "<script" not in text
    assert not {"b", "i", "u"} & {tag for tag in page.tags if tag != "b"}
    assert "<b>schema" not in text
    for name in (*HOSTILE, *schema.names):
        assert f"<bdi>{html.escape(name).replace('&#x27;', '&#39;').replace('&quot;', '&#34;')}</bdi>" in text
    assert "{{ 7*7 }}" in page.words


@pytest.mark.parametrize(
    ("clients", "k", "domain"),
    [(2, 1, [2, 2]), (2, 2, [3, 2]), (1, 1, [2, 2, 2]), (5, 5, [2, 3, 2]), (60, 1, [2, 2]), (12, 3, [2] * 60)],
)
def test_extreme_pools(clients, k, domain):
    pool = made_pool(3, clients=clients, domain=domain)
    page = check(page_of(select(pool, k, certificate="none"), pool))
    assert f"{k} of {clients} clients" in page.words
    assert "Not private" in page.words
    assert "nan" not in page.words.lower().split()


def test_a_pool_of_thousands_is_shortened():
    pool = made_pool(4, clients=5000, domain=[2, 2, 2])
    text = page_of(select(pool, 80, certificate="none"), pool)
    page = check(text)
    assert "and 20 more" in page.words
    assert "50 members with the most records are examined; 30 are left out" in page.words
    assert len(text) < 400_000


def test_a_pool_of_empty_tables():
    base = made_pool(5, clients=4, domain=[2, 2, 2])
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    pool = Pool(**fields | {"counts": np.zeros_like(base.counts)})
    page = check(page_of(select(pool, 2), pool))
    assert "their losses are all the same" in page.words


def test_a_range_of_sizes_is_shown():
    pool = made_pool(6, clients=9, domain=[2, 3, 2])
    selection = select(pool, (2, 4), tolerance=0.05)
    page = check(page_of(selection, pool))
    assert "Other sizes" in page.words
    assert f"has {selection.smallest.k} members" in page.words


def test_warnings_come_first(noisy, chosen):
    stopped = replace(chosen, stop_reason="time limit", notes=("epsilon: 1 and 2",))
    words = check(page_of(stopped, noisy)).words
    assert words.index("Stopped early") < words.index("Federation loss")
    assert "Note. Epsilon: 1 and 2." in words
    example = load_example()
    private = example.pool(plan_noise(55, epsilon=0.5, mechanism="discrete-laplace"))
    words = check(page_of(select(private, 3, certificate="none"), private)).words
    assert "Experiment only" not in words
    assert "Not private" not in words
    assert "discrete-laplace, b = " in words


def test_files_are_written_once(tmp_path, noisy, chosen):
    path = tmp_path / "report.html"
    write_report(chosen, noisy, path, command="fedsel select")
    first = path.read_text(encoding="utf-8")
    check(first)
    with pytest.raises(FedselError, match="exists already"):
        write_report(chosen, noisy, path)
    with pytest.raises(FedselError, match="exists already"):
        check_report(path)
    check_report(path, overwrite=True)
    assert path.read_text(encoding="utf-8") == first
    write_report(chosen, noisy, path, command="fedsel select", overwrite=True)
    assert path.read_text(encoding="utf-8") == first  # the same selection gives the same page
    with pytest.raises(FedselError, match="cannot be written"):
        write_report(chosen, noisy, tmp_path / "missing" / "report.html")
    with pytest.raises(FedselError, match="seed"):
        write_report(chosen, noisy, tmp_path / "other.html", seed=-1)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_extra_is_named_before_anything_is_done(monkeypatch, tmp_path, noisy, chosen):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for attempt in (
        lambda: check_report(tmp_path / "report.html"),
        lambda: write_report(chosen, noisy, tmp_path / "report.html"),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'fedsel\[report\]'"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_losses_without_a_mean_are_shown_as_a_dash(noisy):
    # The largest client alone is short of these records, and with most others too.
    rules = Constraints(min_records=float(np.sort(noisy.totals().estimate)[-5:].sum()) - 1)
    selection = select(noisy, 5, constraints=rules, certificate="none")
    evidence = gather(selection, noisy, constraints=rules)
    assert len(evidence.comparison.losses) < 1000
    assert math.isnan(evidence.comparison.mean) == (len(evidence.comparison.losses) == 0)
    check(render(evidence))
