package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// member is a decoded name and its raw value.
type member struct{ name, value []byte }

// scan returns the members of the document's object, sorted by name, and rejects
// documents that encoding/json would accept. It reads every byte once and stores only
// names, because anyone can send a body this far. An array or a scalar has no members.
func scan(body []byte) ([]member, error) {
	s := scanner{body: body}
	if err := s.value(0); err != nil {
		return nil, err
	}
	if s.space(); s.pos < len(body) {
		return nil, ErrTrailingData
	}
	if !json.Valid(body) { // checks the inside of scalars
		return nil, ErrMalformed
	}
	return s.members, nil
}

// scanner reads the structure of a document. Its position is body[at].
type scanner struct {
	body    []byte
	pos     int
	members []member // members of the open objects, outermost first
}

// peek returns the byte at the position, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.body) {
		return s.body[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for c := s.peek(); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = s.peek() {
		s.pos++
	}
}

// take skips spaces and then c, if it is next.
func (s *scanner) take(c byte) bool {
	if s.space(); s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) value(depth int) error {
	s.space()
	switch c := s.peek(); {
	case (c == '{' || c == '[') && depth == MaxNesting:
		return ErrNesting
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '"':
		_, err := s.text()
		return err
	}
	return s.literal()
}

func (s *scanner) array(depth int) error {
	s.pos++
	if s.take(']') {
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return ErrMalformed
		}
	}
}

func (s *scanner) object(depth int) error {
	s.pos++
	first := len(s.members)
	for more := !s.take('}'); more; more = !s.take('}') {
		if len(s.members) > first && !s.take(',') {
			return ErrMalformed
		}
		if err := s.member(depth); err != nil {
			return err
		}
	}
	// Duplicate names are neighbours after sorting.
	own := s.members[first:]
	slices.SortFunc(own, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	for i := 1; i < len(own); i++ {
		if bytes.Equal(own[i-1].name, own[i].name) {
			return ErrDuplicateName
		}
	}
	if depth > 1 {
		s.members = s.members[:first]
	}
	return nil
}

func (s *scanner) member(depth int) error {
	s.space()
	if s.peek() != '"' {
		return ErrMalformed
	}
	name, err := s.text()
	if err != nil {
		return err
	}
	if bytes.IndexByte(name, '\\') < 0 {
		name = name[1 : len(name)-1]
	} else {
		var decoded string
		if json.Unmarshal(name, &decoded) != nil {
			return ErrMalformed
		}
		name = []byte(decoded)
	}
	if !s.take(':') {
		return ErrMalformed
	}
	i, start := len(s.members), s.pos
	s.members = append(s.members, member{name: name})
	if err := s.value(depth); err != nil {
		return err
	}
	s.members[i].value = s.body[start:s.pos]
	return nil
}

// text reads a string and returns it with its quotes.
func (s *scanner) text() ([]byte, error) {
	start := s.pos
	for s.pos++; s.pos < len(s.body); s.pos++ {
		switch s.body[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return s.body[start:s.pos], nil
		}
	}
	return nil, ErrMalformed
}

// literal reads a number, true, false or null.
func (s *scanner) literal() error {
	start := s.pos
	for isLiteral(s.peek()) {
		s.pos++
	}
	lit := s.body[start:s.pos]
	switch {
	case len(lit) == 0:
		return ErrMalformed
	case lit[0] != '-' && (lit[0] < '0' || lit[0] > '9'):
		return nil
	}
	if _, err := strconv.ParseFloat(string(lit), 64); err != nil {
		return ErrMalformed
	}
	return nil
}

func isLiteral(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'E' || c == '-' || c == '+' || c == '.'
}
