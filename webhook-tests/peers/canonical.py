"""The bytes that a signature of the published A2A SDK covers, as a filter.

In: one card a line, as JSON, on stdin. Out: for each {"form": …}, what the SDK's client canonicalises before it verifies, or {} where it takes the
card for none, on stdout.
"""
import json
import sys

from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import _canonicalize_agent_card


def form(line):
    try:
        return {"form": _canonicalize_agent_card(parse_agent_card(json.loads(line)))}
    except Exception:  # Whatever it is, nothing is verified.
        return {}


for line in sys.stdin.buffer:
    print(json.dumps(form(line)))
