package wire

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"
)

type word string

type filter struct {
	Q       string            `query:"q"`
	Word    word              `query:"word"`
	MFA     *bool             `query:"mfa"`
	Dry     bool              `query:"dry"`
	From    time.Time         `query:"from"`
	IDs     []string          `query:"ids"`
	Words   []word            `query:"words"`
	Members map[string]string `query:"metadata."`
	Body    string            `json:"body"`
}

type list struct {
	filter

	Limit int `query:"limit"`
}

// A query is read in one way only, and an unreadable value names its parameter.
func TestFillQuery(t *testing.T) {
	yes, at := true, time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC)
	for query, want := range map[string]list{
		"":                                 {},
		"q=a&word=b&limit=7":               {filter: filter{Q: "a", Word: "b"}, Limit: 7},
		"q=&limit=&from=&ids=&words=":      {},
		"mfa=true&dry=true":                {filter: filter{MFA: &yes, Dry: true}},
		"dry=false":                        {},
		"from=2026-01-02T03:04:05%2B02:00": {filter: filter{From: at}},
		"ids=a,b&words=c,d":                {filter: filter{IDs: []string{"a", "b"}, Words: []word{"c", "d"}}},
		"metadata.plan=gold&metadata.x=":   {filter: filter{Members: map[string]string{"plan": "gold", "x": ""}}},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var got list
		err = FillQuery(q, &got)
		if got.MFA != nil && want.MFA != nil && *got.MFA == *want.MFA {
			got.MFA = want.MFA
		}
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%q: %#v, %v; want %#v", query, got, err, want)
		}
	}
	for query, name := range map[string]string{
		"limit=0": "limit", "limit=x": "limit", "limit=-1": "limit", "limit=1&limit=2": "limit", "from=x": "from", "mfa=": "mfa", "mfa=1": "mfa", "dry=x": "dry", "q=a&q=b": "q",
		"Q=a": "Q", "body=a": "body", "other=1": "other", "metadata.a=1&metadata.a=2": "metadata.a", "metadata=1": "metadata",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var wrong *ParameterError
		if err := FillQuery(q, new(list)); !errors.As(err, &wrong) || wrong.Name != name || wrong.Problem == "" {
			t.Errorf("%q: %v, want a problem with %s", query, err, name)
		}
	}
}
