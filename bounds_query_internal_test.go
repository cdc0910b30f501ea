package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// What lists are asked for is judged at both sides of each bound, and one member at a
// time: what is wrong with one is not made good by the others.
func TestQueriesAreJudgedMemberByMember(t *testing.T) {
	const id, noID = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d"
	xs := func(n int) string { return strings.Repeat("x", n) }
	odd := "x\x00"
	past := time.Unix(0, 0)
	members := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = "x"
		}
		return m
	}
	ids := func(n int) (list []string) {
		for range n {
			list = append(list, uuid.NewString())
		}
		return list
	}
	type judged interface{ Check() error }
	type pair struct{ good, bad judged }
	all := map[string]pair{
		"user id":             {&UserQuery{ID: strings.ToUpper(id), Limit: 1}, &UserQuery{ID: noID, Limit: 1}},
		"user ids":            {&UserQuery{IDs: ids(MaxQueryIDs), Limit: 1}, &UserQuery{IDs: ids(MaxQueryIDs + 1), Limit: 1}},
		"user one id":         {&UserQuery{IDs: []string{strings.ToUpper(id)}, Limit: 1}, &UserQuery{IDs: []string{id, noID}, Limit: 1}},
		"user subject":        {&UserQuery{Provider: "p", Subject: "s", Limit: 1}, &UserQuery{Subject: "s", Limit: 1}},
		"user limit":          {&UserQuery{Limit: 1}, &UserQuery{}},
		"user sort":           {&UserQuery{Sort: SortEmail, Limit: 1}, &UserQuery{Sort: "name", Limit: 1}},
		"user members":        {&UserQuery{Metadata: members(maxMetadataFilters), Limit: 1}, &UserQuery{Metadata: members(maxMetadataFilters + 1), Limit: 1}},
		"user member":         {&UserQuery{Metadata: map[string]string{"k": xs(maxFilter - 1)}, Limit: 1}, &UserQuery{Metadata: map[string]string{"k": xs(maxFilter)}, Limit: 1}},
		"user nameless":       {&UserQuery{Metadata: map[string]string{"k": ""}, Limit: 1}, &UserQuery{Metadata: map[string]string{"": "v"}, Limit: 1}},
		"user odd name":       {&UserQuery{Metadata: map[string]string{"k": "v"}, Limit: 1}, &UserQuery{Metadata: map[string]string{odd: "v"}, Limit: 1}},
		"user odd value":      {&UserQuery{Metadata: map[string]string{"k": "v"}, Limit: 1}, &UserQuery{Metadata: map[string]string{"k": odd}, Limit: 1}},
		"session limit":       {&SessionQuery{Limit: 1}, &SessionQuery{}},
		"session aal1":        {&SessionQuery{AAL: LevelAAL1, Limit: 1}, &SessionQuery{AAL: "aal3", Limit: 1}},
		"session aal2":        {&SessionQuery{AAL: LevelAAL2, Limit: 1}, &SessionQuery{AAL: "aal", Limit: 1}},
		"session user":        {&SessionQuery{UserID: id, Limit: 1}, &SessionQuery{UserID: noID, Limit: 1}},
		"session client user": {&SessionQuery{Client: xs(256), UserID: id, Limit: 1}, &SessionQuery{Client: xs(257), UserID: id, Limit: 1}},
		"session client ip":   {&SessionQuery{Client: "x", IP: xs(64), Limit: 1}, &SessionQuery{Client: "x", IP: xs(65), Limit: 1}},
		"session client time": {&SessionQuery{Client: "x", Since: past, Limit: 1}, &SessionQuery{Client: "x", Limit: 1}},
		"session odd client":  {&SessionQuery{Client: "x", IP: "x", Limit: 1}, &SessionQuery{Client: odd, IP: "x", Limit: 1}},
		"session odd ip":      {&SessionQuery{Client: "x", IP: "x", Limit: 1}, &SessionQuery{Client: "x", IP: odd, Limit: 1}},
		"session cursor":      {&SessionQuery{After: &SessionCursor{ID: id}, Limit: 1}, &SessionQuery{After: &SessionCursor{ID: noID}, Limit: 1}},
		"message limit":       {&MessageQuery{Limit: 1}, &MessageQuery{}},
		"message id":          {&MessageQuery{ID: id, Limit: 1}, &MessageQuery{ID: noID, Limit: 1}},
		"message kind":        {&MessageQuery{Kind: KindMagicLink, Limit: 1}, &MessageQuery{Kind: "nothing", Limit: 1}},
		"message user":        {&MessageQuery{UserID: id, Limit: 1}, &MessageQuery{UserID: noID, Limit: 1}},
		"message cursor":      {&MessageQuery{After: &MessageCursor{Time: past, ID: id}, Limit: 1}, &MessageQuery{After: &MessageCursor{Time: past.Add(-1), ID: id}, Limit: 1}},
		"message cursor's id": {&MessageQuery{After: &MessageCursor{Time: past, ID: id}, Limit: 1}, &MessageQuery{After: &MessageCursor{Time: past, ID: noID}, Limit: 1}},
		"event id":            {&EventQuery{ID: id}, &EventQuery{ID: noID}},
		"event user":          {&EventQuery{UserID: id}, &EventQuery{UserID: noID}},
		"event involving":     {&EventQuery{Involving: id}, &EventQuery{Involving: noID}},
		"event actor":         {&EventQuery{ActorID: xs(320)}, &EventQuery{ActorID: xs(321)}},
		"event target":        {&EventQuery{Target: xs(320)}, &EventQuery{Target: xs(321)}},
		"event request":       {&EventQuery{RequestID: xs(320)}, &EventQuery{RequestID: xs(321)}},
		"event type":          {&EventQuery{Type: xs(64)}, &EventQuery{Type: xs(65)}},
		"event types":         {&EventQuery{Type: "user.*"}, &EventQuery{Type: "user.*.*"}},
		"event outcome":       {&EventQuery{Outcome: EventFailed}, &EventQuery{Outcome: "lost"}},
		"event cursor":        {&EventQuery{Before: &Event{At: past, ID: id}}, &EventQuery{Before: &Event{ID: id}}},
		"event cursor's id":   {&EventQuery{Before: &Event{At: past, ID: id}}, &EventQuery{Before: &Event{At: past, ID: noID}}},
	}
	for name, member := range map[string]func(q *UserQuery) *string{
		"email": func(q *UserQuery) *string { return &q.Email }, "phone": func(q *UserQuery) *string { return &q.Phone },
		"provider": func(q *UserQuery) *string { return &q.Provider }, "q": func(q *UserQuery) *string { return &q.Prefix }, "role": func(q *UserQuery) *string { return &q.Role },
		"subject": func(q *UserQuery) *string { q.Provider = "p"; return &q.Subject },
	} {
		with := func(text string) judged {
			q := &UserQuery{Limit: 1}
			*member(q) = text
			return q
		}
		all["user "+name] = pair{with(xs(maxFilter)), with(xs(maxFilter + 1))}
		all["user's odd "+name] = pair{with("x"), with(odd)}
	}
	for _, s := range messageStates() {
		all["message "+string(s)] = pair{&MessageQuery{State: s, Limit: 1}, &MessageQuery{State: s + "?", Limit: 1}}
	}
	for what, p := range all {
		if err := p.good.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var e *Error
		if err := p.bad.Check(); !errors.As(err, &e) || e.Code != CodeValidationFailed || len(e.Fields) != 1 {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}
