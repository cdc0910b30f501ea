package apicheck

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Request checks what a well-behaved client sends: the operation is documented,
// there is a body if it needs one, and it fits the schema of its media type.
// Path is relative to the mount, without the query; contentType is the header,
// whose parameters do not matter.
func (c *Checker) Request(method, path, contentType string, body []byte) error {
	template, ok := c.match(path)
	if !ok {
		return fmt.Errorf("apicheck: %s is not in the document", path)
	}
	at := []string{"paths", template, strings.ToLower(method)}
	operation, ok := c.lookup(at...)
	if !ok {
		return fmt.Errorf("apicheck: %s does not document %s", template, method)
	}
	if err := c.requestBody(at, operation, contentType, body); err != nil {
		return fmt.Errorf("apicheck: %s %s: %w", method, template, err)
	}
	return nil
}

func (c *Checker) requestBody(at []string, operation map[string]any, contentType string, body []byte) error {
	if operation["requestBody"] == nil {
		if len(body) > 0 {
			return errors.New("has a body, and should have none")
		}
		return nil
	}
	at, promise := c.follow(c.lookupAt(at, "requestBody"))
	if len(body) == 0 {
		if promise["required"] == true {
			return errors.New("needs a body")
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("content type: %w", err)
	}
	at, content := c.lookupAt(at, "content", mediaType)
	if content == nil {
		return fmt.Errorf("takes no %s", mediaType)
	}
	v, err := parse(mediaType, body)
	if err != nil {
		return err
	}
	return c.validate(v, append(at, "schema")...)
}

// parse makes a body the value that schemas speak of. A form is an object of
// strings.
func parse(mediaType string, body []byte) (any, error) {
	if mediaType != "application/x-www-form-urlencoded" {
		return jsonschema.UnmarshalJSON(bytes.NewReader(body))
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	for name, values := range form {
		if len(values) > 1 {
			return nil, fmt.Errorf("%s comes %d times", name, len(values))
		}
		object[name] = values[0]
	}
	return object, nil
}
