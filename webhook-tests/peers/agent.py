"""An A2A agent by the published SDK, whose card is signed by its signer.

In: the path of a JSON file: `host`, `port`, `name`, `description`, `skills` (ids), `path` (where it answers JSON-RPC), `key` and `chain`
(PKCS#8 as PEM, and certificates as base64 DER, leaf first; both absent: not signed), `tamper` (a description that is served instead of the
signed one). Out: its card under the well-known path, in both shapes, and an echo.
"""
import json
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.signing import create_agent_card_signer
from starlette.applications import Starlette

with open(sys.argv[1], encoding="utf-8") as file:
    wanted = json.load(file)

at = f"http://{wanted['host']}:{wanted['port']}{wanted['path']}"
card = AgentCard(
    name=wanted["name"],
    description=wanted["description"],
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=at, protocol_binding="JSONRPC", protocol_version=version) for version in ("1.0", "0.3")
    ],
    capabilities=AgentCapabilities(streaming=False, push_notifications=False),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id=skill, name=skill, description=f"does {skill}", tags=[skill]) for skill in wanted["skills"]],
)
if wanted.get("key"):
    header = {"alg": "ES256", "typ": "JOSE", "kid": wanted["name"], "x5c": wanted["chain"]}
    create_agent_card_signer(wanted["key"].encode(), header)(card)
if wanted.get("tamper"):
    card.description = wanted["tamper"]


class Echo(AgentExecutor):
    async def execute(self, context, queue):
        await queue.enqueue_event(new_text_message(f"echo: {context.get_user_input()}"))

    async def cancel(self, context, queue):
        raise NotImplementedError


handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, wanted["path"], enable_v0_3_compat=True)]
uvicorn.run(Starlette(routes=routes), host=wanted["host"], port=wanted["port"], log_level="warning")
