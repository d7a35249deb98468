"""Pages, messages, comments and names use the field's words; `vocabulary.py` has the list and says where each is."""

from __future__ import annotations

import pytest
import vocabulary


def test_there_are_no_private_words() -> None:
    assert [str(hit) for hit in vocabulary.hits()] == []


@pytest.mark.parametrize(
    "text",
    [
        "Mend it first", "it tells the worker", "jobs are given back", "somebody else", "it stops in order",
        "The lock is refused", "look at the queue", "a sign of life", "it runs at once", "made-up queue",
    ],
)  # fmt: skip
def test_a_private_word_is_found(text: str) -> None:
    assert vocabulary.private_phrases(text)


@pytest.mark.parametrize(
    "text",
    [
        "order by id", "rows in order of their ids", "connection refused", "look up a name", "a recommendation",
        "it is used in order to sort", "jobs_gw_queue_heads_index", "see troubleshooting.md", "one round trip",
    ],
)  # fmt: skip
def test_ordinary_words_pass(text: str) -> None:
    assert vocabulary.private_phrases(text) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("tell_lost", ["tell"]), ("wantsSilence", ["silence"]), ("give_back_jobs", ["give_back"]), ("heartbeat", [])],
)
def test_names_are_taken_apart(name: str, words: list[str]) -> None:
    assert vocabulary.private_names(name) == words
