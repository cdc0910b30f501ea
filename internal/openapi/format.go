package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// lineLength is the longest line on which Format writes an object or array.
const lineLength = 120

// Format formats a document for people: short objects and arrays are on one line, the
// others are indented. It keeps the order of names.
func Format(doc []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := format(&out, doc, "\n"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// format writes one value. lineBreak is a line feed with the value's indentation.
func format(out *bytes.Buffer, value json.RawMessage, lineBreak string) error {
	short, err := oneLine(value)
	if err != nil {
		return err
	}
	if opening := short[0]; len(short)+len(lineBreak) <= lineLength || opening != '{' && opening != '[' {
		out.Write(short)
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return err
	}
	out.WriteByte(short[0])
	inner := lineBreak + "\t"
	for separator := ""; dec.More(); separator = "," {
		out.WriteString(separator + inner)
		if short[0] == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%q: ", name)
		}
		var member json.RawMessage
		if err := dec.Decode(&member); err != nil {
			return err
		}
		if err := format(out, member, inner); err != nil {
			return err
		}
	}
	out.WriteString(lineBreak)
	out.WriteByte(short[len(short)-1])
	return nil
}

// oneLine returns a value with a space after each colon and comma outside of strings.
func oneLine(value json.RawMessage) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return nil, err
	}
	var line []byte
	inString, escaped := false, false
	for _, c := range compact.Bytes() {
		line = append(line, c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == ':' || c == ','):
			line = append(line, ' ')
		}
	}
	return line, nil
}
