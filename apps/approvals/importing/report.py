"""What became of an import: counts, and a sentence for everything that was not taken as it stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.approvals.importing.records import Refused

SHOWN = 50


@dataclass(slots=True)
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def refuse(self, refused: Refused) -> None:
        self.counts["refused"] += 1
        self.refused.append(refused)

    def remark(self, kind: str, sentence: str) -> None:
        self.counts[kind] += 1
        self.remarks.append(sentence)

    def lines(self) -> Iterator[str]:
        for kind, count in self.counts.items():
            yield f"{count:>8,}  {kind}"
        for refused in self.refused[:SHOWN]:
            yield f"  line {refused.line} ({refused.reference or 'no id'}): {refused.reason}"
        for sentence in self.remarks[:SHOWN]:
            yield f"  {sentence}"
        hidden = max(0, len(self.refused) - SHOWN) + max(0, len(self.remarks) - SHOWN)
        if hidden:
            yield f"  … and {hidden:,} more; `--report FILE` writes them all."

    def everything(self) -> Iterator[str]:
        for refused in self.refused:
            yield f"line {refused.line}\t{refused.reference}\t{refused.reason}"
        yield from self.remarks
