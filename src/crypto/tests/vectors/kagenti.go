// Writes kagenti.json: canonical forms by Go's encoding/json, after the rules of the profiles kagenti-v1 and kagenti-v2. Usage: go run kagenti.go > kagenti.json
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
)

type provider struct {
	Organization string `json:"organization,omitempty"`
	URL          string `json:"url,omitempty"`
}
type value struct{ json.RawMessage }
type extension struct {
	URI         string           `json:"uri,omitempty"`
	Description string           `json:"description,omitempty"`
	Required    *bool            `json:"required,omitempty"`
	Params      map[string]value `json:"params,omitempty"`
}
type capabilities struct {
	Streaming         *bool       `json:"streaming,omitempty"`
	PushNotifications *bool       `json:"pushNotifications,omitempty"`
	Extensions        []extension `json:"extensions,omitempty"`
}
type parameter struct {
	Name        string `json:"name,omitempty"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Required    *bool  `json:"required,omitempty"`
	Default     string `json:"default,omitempty"`
}
type skill struct {
	ID          string      `json:"id,omitempty"`
	Name        string      `json:"name,omitempty"`
	Description string      `json:"description,omitempty"`
	Tags        []string    `json:"tags,omitempty"`
	Examples    []string    `json:"examples,omitempty"`
	InputModes  []string    `json:"inputModes,omitempty"`
	OutputModes []string    `json:"outputModes,omitempty"`
	Parameters  []parameter `json:"parameters,omitempty"`
}
type card struct {
	Name                              string        `json:"name,omitempty"`
	Description                       string        `json:"description,omitempty"`
	Version                           string        `json:"version,omitempty"`
	URL                               string        `json:"url,omitempty"`
	DocumentationURL                  string        `json:"documentationUrl,omitempty"`
	IconURL                           string        `json:"iconUrl,omitempty"`
	Provider                          *provider     `json:"provider,omitempty"`
	Capabilities                      *capabilities `json:"capabilities,omitempty"`
	DefaultInputModes                 []string      `json:"defaultInputModes,omitempty"`
	DefaultOutputModes                []string      `json:"defaultOutputModes,omitempty"`
	Skills                            []skill       `json:"skills,omitempty"`
	SupportsAuthenticatedExtendedCard *bool         `json:"supportsAuthenticatedExtendedCard,omitempty"`
}

func prune(object map[string]any, lists bool) map[string]any {
	kept := map[string]any{}
	for name, member := range object {
		switch member := member.(type) {
		case nil:
		case string:
			if member != "" {
				kept[name] = member
			}
		case map[string]any:
			if inner := prune(member, lists); len(inner) > 0 {
				kept[name] = inner
			}
		case []any:
			list := member
			if lists {
				list = nil
				for _, element := range member {
					if inner, is := element.(map[string]any); is {
						if inner = prune(inner, lists); len(inner) > 0 {
							list = append(list, inner)
						}
					} else if element != nil && element != "" {
						list = append(list, element)
					}
				}
			}
			if len(list) > 0 {
				kept[name] = list
			}
		default:
			kept[name] = member
		}
	}
	return kept
}

func canonical(document string, lists bool) string {
	var typed card
	check(json.Unmarshal([]byte(document), &typed))
	text, err := json.Marshal(typed)
	check(err)
	var object map[string]any
	check(json.Unmarshal(text, &object))
	text, err = json.Marshal(prune(object, lists))
	check(err)
	return string(text)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	documents := []string{
		`{"name":"Weather Agent","description":"Forecasts & alerts","url":"http://weather-agent.team1.svc.cluster.local:8000","version":"1.0.0","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","iconUrl":"","capabilities":{"streaming":false,"extensions":[]},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"get_weather","name":"get_weather","description":"","tags":["weather"],"examples":[]}]}`,
		`{"capabilities":{},"provider":{"organization":"","url":""},"name":"Q&A <Agent>","description":"a\u2028b\u2029c"}`,
		`{"description":"\" \\ \/ \b \f \n \r \t \u0000 \u001f \u007f é – 😀 \ud83d\ude00","iconUrl":null}`,
		`{"defaultInputModes":["","text"],"defaultOutputModes":[""],"skills":[{}],"supportsAuthenticatedExtendedCard":false}`,
		`{"defaultInputModes":[null,"text"],"skills":[null,{"id":"x","tags":[],"examples":["",""],"parameters":[{},{"name":"p","required":false,"default":""}]}]}`,
		`{"capabilities":{"streaming":true,"pushNotifications":false,"extensions":[{"uri":"https://example.org/ext","description":"","required":false,"params":{"zero":0,"empty":"","list":[],"nil":null,"object":{},"nested":{"a":"","b":[{},"",null,0,false,[],[""],{"c":""},{"c":1}]}}},{"params":{}},{"params":null},{}]}}`,
		`{"capabilities":{"extensions":[{"params":{"n":1.0,"z":-0.0,"e":1e21,"s":1e-7,"t":1e-6,"big":12345678901234567890,"tenth":0.1,"max":1.7976931348623157e308,"min":5e-324,"long":0.1000000000000000055511151231257827021181583404541015625,"neg":-123.456e-5,"tie":1424953923781206.25,"past":9007199254740993,"twenty":1e20,"twentyone":123456789012345680000,"":1,"\ue000":2,"😀":3,"<&>":4}}]}}`,
		`{"unknown":{"name":"x"},"Name":null,"skills":[{"id":"a","security":[]},{"unknown":1}],"version":"1"}`,
		`{}`,
	}
	type entry struct {
		Document string `json:"document"`
		V1       string `json:"v1"`
		V2       string `json:"v2"`
	}
	var entries []entry
	for _, document := range documents {
		entries = append(entries, entry{document, canonical(document, false), canonical(document, true)})
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	check(encoder.Encode(map[string]any{"generator": "kagenti.go, " + runtime.Version(), "cases": entries}))
	_, err := os.Stdout.Write(out.Bytes())
	check(err)
}
