"""What became of an import: counts, and a sentence for everything that was not taken as it stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from apps.approvals.importing.records import Refused

SHOWN = 50


@dataclass(slots=True)
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def refuse(self, refused: Refused) -> None:
        self.counts["refused"] += 1
        self.refused.append(refused)

    def remark(self, kind: str, sentence: str) -> None:
        self.counts[kind] += 1
        self.remarks.append(sentence)

    def not_read(self, keys: Iterable[str]) -> None:
        self.unread.update(keys)

    def lines(self) -> Iterator[str]:
        """Everything by itself first, and the counts last, where a terminal still shows them."""
        for refused in self.refused[:SHOWN]:
            yield f"  line {refused.line} ({refused.reference or 'no id'}): {refused.reason}"
        for sentence in self.remarks[:SHOWN]:
            yield f"  {sentence}"
        hidden = max(0, len(self.refused) - SHOWN) + max(0, len(self.remarks) - SHOWN)
        if hidden:
            yield f"  … and {hidden:,} more; `--report FILE` writes them all."
        if self.unread:
            yield f"  Keys that were not read: {', '.join(list(self._unread())[:SHOWN])}."
        for kind, count in self.counts.items():
            yield f"{count:>8,}  {kind}"

    def _unread(self) -> Iterator[str]:
        for name, count in self.unread.most_common():
            # As it is written in Python: a terminal must not obey what stands in a file.
            yield f"{name if name.isidentifier() else repr(name)} ({count:,})"

    def everything(self) -> Iterator[str]:
        for refused in self.refused:
            yield f"line {refused.line}\t{refused.reference}\t{refused.reason}"
        yield from self.remarks
        yield from (f"not read: {told}" for told in self._unread())
