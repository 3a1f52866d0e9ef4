"""How token ids become text: one rule for every backend, and it is that of vLLM's server, which cannot be changed here.

A reply's text is what its ids add, one by one, to the text of its prompt.  Decoded alone a reply would lose a space at
its start under many tokenizers (words, SentencePiece), and a conversation that shows it again would have other ids.
A character whose last bytes are missing waits for them, and is dropped where they do not come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: How a manifest states the rule.
TEXTS = "decoded after the prompt"

#: What a tokenizer writes for the bytes of an incomplete character.
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class ReplyText:
    """The text of one reply while its ids come in."""

    def __init__(self, decode: Callable[[list[int]], str], prompt: Sequence[int], stops: Sequence[str] = ()) -> None:
        """``decode`` gives the text of ids without special tokens; each of ``stops`` ends the reply."""
        #: Without the stop string that ended it.
        self.text = ""
        self.stop: str | None = None
        self._stops = stops
        self._decode = decode
        # Ids whose text is known, then those that wait for the rest of a character; with the text and number of the
        # known ones.  Only as many are kept as the next id can depend on.
        self._ids = list(prompt)
        self._known, self._count = "", 0

    def add(self, token: int) -> None:
        """Take one more id."""
        self._grow(token)
        # Of several stop strings the one that is complete first counts.
        ends = [(self.text.find(stop) + len(stop), stop) for stop in self._stops if stop in self.text]
        if ends:
            end, self.stop = min(ends, key=lambda entry: entry[0])
            self.text = self.text[: end - len(self.stop)]

    def _grow(self, token: int) -> None:
        if not self._known and self._ids:
            known = self._decode(self._ids)
            if not known.endswith(_INCOMPLETE):
                self._known, self._count = known, len(self._ids)
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith(_INCOMPLETE) or len(text.encode()) <= len(self._known.encode()):
            return
        if not text.startswith(self._known):
            # Bytes that form no character changed what was known: start anew with this id, as vLLM does.
            self._ids, self._known, self._count = [], "", 0
            self._grow(token)
            return
        self.text += text[len(self._known) :]
        self._ids, self._count = self._ids[self._count :], len(self._ids) - self._count
        self._known = self._decode(self._ids)


class ReplyTextAlone(ReplyText):
    """The reply decoded without its prompt: the rule of runs whose manifests name no other."""

    def __init__(self, decode: Callable[[list[int]], str], prompt: Sequence[int], stops: Sequence[str] = ()) -> None:
        super().__init__(decode, (), stops)

    def _grow(self, token: int) -> None:
        self._ids.append(token)
        self.text = self._decode(self._ids)
