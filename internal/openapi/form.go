package openapi

import "maps"

// withForm adds a form body to an operation with a JSON body. The form has the JSON
// properties that a form can represent and the fields of all forms, which take precedence.
// The response is a redirect or a page.
func (b *builder) withForm(rt Route, op operation, p prose) operation {
	json, _ := op.JSON.(object)
	from, _ := json["properties"].(object)
	if from == nil || len(p.Form) == 0 {
		b.fault("%s takes forms: its JSON needs properties, and openapi/prose.json the fields of all forms", rt.Pattern)
	}
	fields := object{}
	for name, schema := range from {
		if schema != "object" {
			fields[name] = schema
		}
	}
	maps.Copy(fields, p.Form)
	form := object{"type": "object", "properties": fields, "additionalProperties": false}
	if json["required"] != nil {
		form["required"] = json["required"]
	}
	op.Form = form
	op.Responses = maps.Clone(op.Responses)
	done, ok := op.Responses["200"]
	if !ok {
		done.Description = "Done: a page."
	}
	done.Other = append([]string{"text/html"}, done.Other...)
	op.Responses["200"] = done
	op.Responses["303"] = response{Description: "A form: on to return_to or redirect_to."}
	return op
}
