# A tool server by the published FastMCP, as the contract of runtime python-string has it: executes the Python text of
# MCP_TOOLS_STRING and serves every function that it defines as a tool, over streamable HTTP, at /mcp.
#
# In: MCP_TOOLS_STRING, MCP_HOST (default: every address), MCP_PORT (default: 8000).
import os, types

from fastmcp import FastMCP

server = FastMCP("tools")
defined = {}
exec(os.environ["MCP_TOOLS_STRING"], defined)
for value in list(defined.values()):
    if isinstance(value, types.FunctionType):
        server.tool(value)
server.run(transport="http", host=os.environ.get("MCP_HOST", "0.0.0.0"), port=int(os.environ.get("MCP_PORT", "8000")), path="/mcp")
