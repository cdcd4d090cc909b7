#!/usr/bin/env python3
"""Writes a2a_sdk.json: what the published A2A Python SDK signs for a card, and the document it serves. Needs `a2a-sdk[signing,http-server]`. Usage: a2a_sdk.py > a2a_sdk.json"""
import json,sys,copy
from a2a.types import AgentCard
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import _canonicalize_agent_card
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from google.protobuf.json_format import ParseDict
KAT2=dict(name="Weather Agent",description="",version="1.0.0",supportedInterfaces=[dict(url="http://weather-agent.team1.svc.cluster.local:8000/",protocolBinding="JSONRPC",protocolVersion="1.0")],capabilities=dict(streaming=True,pushNotifications=False,extensions=[dict(uri="https://example.org/ext",description="",required=False,params=dict(zero=0,empty="",list=[]))]),defaultInputModes=["text/plain"],defaultOutputModes=["text/plain"],skills=[dict(id="w",name="Wx",description="Café & more",tags=[],examples=[])])
cards={"kat-2":KAT2}
c=copy.deepcopy(KAT2); c["description"]="Q&A <Agent> \u2028 é – 😀 \u0007 \b\f\n\t\"\\ /"; c["iconUrl"]="";c["documentationUrl"]="https://example.org/"; c["provider"]={"organization":"","url":"https://p"}
c["capabilities"]["extensions"][0]["required"]=True
c["capabilities"]["extensions"][0]["params"]={"n":1.0,"z":-0.0,"s":1e-7,"big":9007199254740991,"f":0.1,"t":1.5e300,"tie":1424953923781206.25,"past":9007199254740993.0,"twenty":1e20,"e":1e21,"p":1e16,"min":5e-324,"no":False,"nil":None,"deep":{"a":[{"x":""},{},[],[[]],"",None,0,{"y":1}]},"\ue000":1,"😀":2,"€":3,"\r":4,"1":5}
cards["texts and numbers"]=c
c=copy.deepcopy(KAT2)
c["securitySchemes"]={"bearer":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":""}},"key":{"apiKeySecurityScheme":{"location":"header","name":"x"}},"oidc":{"openIdConnectSecurityScheme":{"openIdConnectUrl":"https://i"}},"mtls":{"mtlsSecurityScheme":{}},
 "oauth":{"oauth2SecurityScheme":{"oauth2MetadataUrl":"https://m","flows":{"authorizationCode":{"authorizationUrl":"https://a","tokenUrl":"https://t","scopes":{"read":"Read","none":""},"pkceRequired":True}}}},
 "oauth2":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"deviceAuthorizationUrl":"https://d","tokenUrl":"https://t","scopes":{"r":"R"}}}}},
 "cc":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://t","scopes":{}}}}}}
c["securityRequirements"]=[{"schemes":{"bearer":{"list":[]},"oauth":{"list":["read"]}}}]
c["skills"][0]["securityRequirements"]=[{"schemes":{"oauth":{"list":["read",""]}}}]
c["skills"][0]["tags"]=["weather",""]
c["skills"][0]["inputModes"]=["a"];c["skills"][0]["outputModes"]=["b"];c["skills"][0]["examples"]=["e"]
c["capabilities"]["extendedAgentCard"]=True
c["supportedInterfaces"][0]["tenant"]="t"
cards["security"]=c
c=copy.deepcopy(KAT2); c["name"]="";c["capabilities"]={};c["skills"]=[{}]; c["defaultInputModes"]=[""]
cards["nearly empty"]=c
from importlib.metadata import version
out = []
for name, c in cards.items():
    card = ParseDict(copy.deepcopy(c), AgentCard())
    signed = _canonicalize_agent_card(card)
    served = json.dumps(agent_card_to_dict(card))
    if signed != _canonicalize_agent_card(parse_agent_card(json.loads(served))):
        sys.exit("the SDK does not verify what it serves: " + name)
    out.append({"name": name, "document": served, "canonical": signed})
json.dump({"generator": "a2a_sdk.py, a2a-sdk " + version("a2a-sdk"), "cases": out}, sys.stdout, indent=1)
print()
