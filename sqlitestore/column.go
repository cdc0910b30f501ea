package sqlitestore

import (
	"encoding/json"
	"fmt"
	"time"
)

// How Go values become columns, and columns Go values.

// utc returns t as it is stored: in UTC, to the microsecond.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// micros is a time that is always set. The zero time is before all others.
func micros(t time.Time) int64 { return utc(t).UnixMicro() }

// maybe is a time that may be missing.
func maybe(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

// upward is the first stored time that is not before t, for conditions with bounds.
func upward(t time.Time) int64 {
	if stored := utc(t); stored.Before(t) {
		return micros(stored) + 1
	}
	return micros(t)
}

// bound is an upper bound that may be missing.
func bound(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return upward(t)
}

// at scans a time; null is the zero time.
type at struct{ to *time.Time }

func (a at) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*a.to = time.Time{}
	case int64:
		*a.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time of type %T", v)
	}
	return nil
}

// orNull is a text that is null if it is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// blob are bytes that are never null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// bytesOrNull are bytes that are null if there are none.
func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// text returns v as JSON.
func (t *tx) text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil && t.err == nil {
		t.err = err
	}
	return string(raw)
}

// object returns metadata as JSON.
func (t *tx) object(m map[string]any) string {
	if len(m) == 0 {
		return "{}"
	}
	return t.text(m)
}

// parsed scans JSON.
type parsed struct{ to any }

func (p parsed) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(v), p.to)
	case []byte:
		return json.Unmarshal(v, p.to)
	default:
		return fmt.Errorf("JSON of type %T", v)
	}
}
