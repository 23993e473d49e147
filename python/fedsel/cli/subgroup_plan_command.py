"""``fedsel subgroups plan``: the public agreement of a private discovery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.release_options import SchemaOption

if TYPE_CHECKING:
    from fedsel.subgroups.federated.protocol import SubgroupProtocol


def plan_command(
    *,
    schema: SchemaOption,
    out: Annotated[Path, typer.Option("-o", "--out", help="Protocol file to write (JSON).", show_default=False)],
    positive: Annotated[
        str | None, typer.Option(help="Category of the target that counts as yes. (default: its last)")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Variable that no condition shall speak of; may be repeated.")
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Pairs of attributes that round 2 asks for. (default: 8, or all)")
    ] = None,
    pair_share: Annotated[float, typer.Option(help="Share of round 2 in the cost of rounds 1 and 2.")] = 0.3,
    confirm: Annotated[int, typer.Option(help="Tables that round 3 measures afresh; 0: no round 3.")] = 0,
    confirm_share: Annotated[float, typer.Option(help="Share of round 3 in the whole cost.")] = 0.2,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Agree on what clients will release: which tables, in how many rounds, how precise.

    [bold]fedsel subgroups plan --schema schema.toml -o protocol.json[/]

    Publish the file to all clients. It knows nothing of anybody's rows.
    """
    from fedsel.schema import Schema
    from fedsel.subgroups.federated.protocol import SubgroupProtocol, write_protocol

    agreed = Schema.from_toml(schema)
    protocol = SubgroupProtocol.make(
        agreed,
        positive=positive,
        exclude=exclude or (),
        pairs=pairs,
        pair_share=pair_share,
        confirm=confirm,
        confirm_share=confirm_share,
    )
    typer.echo(describe_protocol(protocol))
    write_protocol(protocol, out, overwrite=force)
    typer.echo(f"wrote      {out}")


def describe_protocol(protocol: SubgroupProtocol) -> str:
    """Return lines on outcome and rounds."""
    schema = protocol.schema
    assert schema.target is not None
    what = ("the outcome, and by every attribute", "pairs of attributes, chosen by round 1", "measured afresh")
    shares = [w * number for w, number in zip(protocol.precision, protocol.tables, strict=True)]
    return "\n".join(
        [
            f"schema     {schema.name} ({schema.fingerprint[:12]})",
            f"outcome    {schema.target} = {schema.labels(schema.target)[protocol.positive]}",
            f"attributes {len(protocol.attributes)}: {', '.join(schema.names[a] for a in protocol.attributes)}",
            *[
                f"round {number}    {tables} tables ({text}), {share / sum(shares):.0%} of the cost"
                for number, (tables, text, share) in enumerate(
                    zip(protocol.tables, what, shares, strict=False), start=1
                )
            ],
        ]
    )
