// The bytes that a signature of Kagenti covers, by Go's own encoding/json, as a filter.
//
// In: one card a line, as JSON, on stdin. Out: for each {"v1": …, "v2": …}, the canonical forms of before and since June 2026, or {} where the
// card does not fit its model, on stdout. The model is written from the specification of the profiles, not taken from anybody.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type provider struct {
	Organization string `json:"organization,omitempty"`
	URL          string `json:"url,omitempty"`
}

type extension struct {
	URI         string         `json:"uri,omitempty"`
	Description string         `json:"description,omitempty"`
	Required    *bool          `json:"required,omitempty"`
	Params      map[string]any `json:"params,omitempty"`
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
	Default     string `json:"default,omitempty"`
	Required    *bool  `json:"required,omitempty"`
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

// The value without what is empty; false when nothing is left. Lists are entered since version 2.
func pruned(value any, lists bool) (any, bool) {
	switch value := value.(type) {
	case nil:
		return nil, false
	case string:
		return value, value != ""
	case map[string]any:
		return members(value, lists)
	case []any:
		if len(value) == 0 {
			return nil, false
		}
		if !lists {
			return value, true
		}
		kept := []any{}
		for _, element := range value {
			// A list within a list stays as it is.
			if _, isList := element.([]any); isList {
				kept = append(kept, element)
			} else if left, is := pruned(element, lists); is {
				kept = append(kept, left)
			}
		}
		return kept, len(kept) > 0
	}
	return value, true
}

func members(object map[string]any, lists bool) (map[string]any, bool) {
	kept := map[string]any{}
	for name, value := range object {
		if left, is := pruned(value, lists); is {
			kept[name] = left
		}
	}
	return kept, len(kept) > 0
}

func forms(line []byte) map[string]string {
	var model card
	if json.Unmarshal(line, &model) != nil {
		return nil
	}
	text, err := json.Marshal(model)
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for name, lists := range map[string]bool{"v1": false, "v2": true} {
		var object map[string]any
		if json.Unmarshal(text, &object) != nil {
			return nil
		}
		kept, _ := members(object, lists)
		form, err := json.Marshal(kept)
		if err != nil {
			return nil
		}
		found[name] = string(form)
	}
	return found
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		answer := forms(lines.Bytes())
		if answer == nil {
			answer = map[string]string{}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Write(append(text, '\n'))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
