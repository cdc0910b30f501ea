package wire

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// ParameterError is a parameter of a query that cannot be read.
type ParameterError struct{ Name, Problem string }

func (e *ParameterError) Error() string { return e.Name + " " + e.Problem }

// FillQuery reads a query into the struct that v points to, by its tags "query" and those
// of structs embedded in it. Fields are strings, bools, ints, times and lists, which
// commas separate, and pointers to bools. A tag that ends in a dot belongs to a
// map[string]string, which gets every parameter that begins with it. A parameter that the
// struct lacks is an error, because the caller relies on something that has no effect.
// Errors: a *ParameterError, of the first field that cannot be read.
func FillQuery(query url.Values, v any) error {
	known := map[string]bool{}
	if err := fillQuery(query, reflect.ValueOf(v).Elem(), known); err != nil {
		return err
	}
	for name := range query {
		if !known[name] {
			return &ParameterError{name, "is no parameter of this list"}
		}
	}
	return nil
}

func fillQuery(query url.Values, fields reflect.Value, known map[string]bool) error {
	for i := range fields.NumField() {
		f := fields.Type().Field(i)
		name := f.Tag.Get("query")
		switch {
		case f.Anonymous:
			if err := fillQuery(query, fields.Field(i), known); err != nil {
				return err
			}
			continue
		case name == "":
			continue
		}
		if members, ok := fields.Field(i).Addr().Interface().(*map[string]string); ok {
			for given := range query {
				member, begins := strings.CutPrefix(given, name)
				if !begins {
					continue
				}
				if *members == nil {
					*members = map[string]string{}
				}
				(*members)[member] = query.Get(given)
				if known[given] = true; len(query[given]) > 1 {
					return &ParameterError{given, "is given twice"}
				}
			}
			continue
		}
		if known[name] = true; len(query[name]) > 1 {
			return &ParameterError{name, "is given twice"}
		}
		if problem := setParameter(fields.Field(i).Addr().Interface(), query.Get(name), query.Has(name)); problem != "" {
			return &ParameterError{name, problem}
		}
	}
	return nil
}

// setParameter sets a field to the text of its parameter. It returns the problem with it.
func setParameter(field any, text string, given bool) (problem string) {
	var err error
	switch to := field.(type) {
	case *int:
		if text == "" {
			return ""
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 1 {
			return "has to be a number from 1"
		}
	case *time.Time:
		if text == "" {
			return ""
		}
		if *to, err = time.Parse(time.RFC3339, text); err != nil {
			return "has to be a time such as 2026-01-02T15:04:05Z"
		}
		*to = to.UTC()
	case *bool, **bool:
		if given && text != "true" && text != "false" {
			return "has to be true or false"
		}
		setBool(field, text == "true", given)
	default:
		v := reflect.ValueOf(field).Elem()
		if v.Kind() != reflect.Slice {
			v.SetString(text)
			break
		}
		for part := range strings.SplitSeq(text, ",") {
			if text != "" {
				v.Set(reflect.Append(v, reflect.ValueOf(part).Convert(v.Type().Elem())))
			}
		}
	}
	return ""
}
