"""Of what a briefing tells nearly all is true and still matters, over the sessions of the recall corpus."""

from __future__ import annotations

import pytest
from bench.recall_judged import PROJECT, judged
from bench.recall_truth import Judgement
from tests.transcripts import folded

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.wording import items
from holdfast.briefing.model import TOKENS, Occasion, fitting


@pytest.mark.parametrize("occasion", [Occasion.COMPACT, Occasion.CRASH, Occasion.STARTUP])
def test_nearly_all_that_is_told_is_true_and_still_matters(occasion: Occasion) -> None:
    judgement = Judgement()
    for session in judged():
        ledger = folded(Ledger(session.transcript.session_id), session.transcript.entries)
        told = fitting(items(ledger, PROJECT, occasion), TOKENS[occasion])
        judgement.judge(session.name, told, session.truth, PROJECT)
    assert judgement.of(None)[0] <= 0.05, judgement.wrong
    assert judgement.of("errors")[0] <= 0.1, judgement.wrong
    if occasion is not Occasion.STARTUP:
        assert judgement.of(None)[1] <= 0.05, "and what matters is told"
        assert judgement.told.total() > 300
