package authclient

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const scenarioFolder = "../clients/scenarios"

// Each file of scenarios, and the reason if it is not run. A file that is not in this list
// is unknown, and fails.
var scenarioFiles = map[string]string{
	"account.json":       "",
	"outage.json":        "",
	"refresh.json":       "",
	"second-factor.json": "",
	"sign-in.json":       "",
	"cookies.json":       "a Go program keeps tokens, and no browser's cookies",

	"fixtures.json":    "no scenarios: what they have in common",
	"transitions.json": "no scenarios: the table",
}

type scenario struct {
	Name, Prevents string
	Options        struct {
		Cookies bool
		APIKey  string
	}
	Stored any
	Steps  []map[string]any
}

type scenarioStep struct {
	Do       string
	With     json.RawMessage
	Together []scenarioStep
	Server   []*exchange
	Result   *struct {
		Error map[string]any
		Data  json.RawMessage
	}
	State map[string]any
	Keeps json.RawMessage
	Store json.RawMessage
	Tells []string
}

func readScenarios[T any](t *testing.T, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(scenarioFolder, name))
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(name, err)
	}
	return v
}

// Every client library passes these scenarios. The table of transitions has exactly the
// transitions that occur.
func TestScenarios(t *testing.T) {
	t.Parallel()
	entries, err := filepath.Glob(filepath.Join(scenarioFolder, "*.json"))
	if err != nil || len(entries) != len(scenarioFiles) {
		t.Error(len(entries), "files of scenarios are there, and known are", len(scenarioFiles), err)
	}
	seen := &transitionsSeen{seen: map[string]bool{}}
	fixtures := readScenarios[map[string]any](t, "fixtures.json")
	for _, path := range entries {
		name := filepath.Base(path)
		reason, known := scenarioFiles[name]
		if !known {
			t.Errorf("%s is not known: run it, or say why not", name)
		}
		if reason != "" {
			continue
		}
		for _, s := range readScenarios[struct{ Scenarios []scenario }](t, name).Scenarios {
			t.Run(strings.TrimSuffix(name, ".json")+": "+s.Name, func(t *testing.T) {
				if s.Options.Cookies {
					t.Fatal("cookies in a file that is not about them")
				}
				newScenarioRun(t, s, fixtures, seen).run()
				if t.Failed() {
					t.Log("prevents:", s.Prevents)
				}
			})
		}
	}
	table := readScenarios[struct{ Transitions []struct{ From, To string } }](t, "transitions.json")
	want := map[string]bool{}
	for _, row := range table.Transitions {
		want[row.From+" → "+row.To] = true
	}
	if !maps.Equal(seen.seen, want) {
		for k := range want {
			if !seen.seen[k] {
				t.Error("in no scenario:", k)
			}
		}
		for k := range seen.seen {
			if !want[k] {
				t.Error("not in the table:", k)
			}
		}
	}
}

type transitionsSeen struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (s *transitionsSeen) add(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[from+" → "+to] = true
}
