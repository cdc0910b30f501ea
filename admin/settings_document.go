package admin

import "github.com/authmount/auth/internal/host"

// settingSchema is the name of the schema of a setting in responses, and the schema of its
// value.
func settingSchema(d host.SettingDeclaration) (name string, value map[string]any) {
	switch d.Kind {
	case host.SettingSwitch:
		return "SwitchSetting", map[string]any{"type": "boolean"}
	case host.SettingNumber, host.SettingSeconds:
		return "NumberSetting", map[string]any{"type": "integer", "minimum": 0}
	case host.SettingList:
		return "ListSetting", map[string]any{"type": "array", "items": "string", "maxItems": d.MaxEntries}
	case host.SettingTexts:
		return "TextsSetting", map[string]any{"type": "object", "additionalProperties": "string", "maxProperties": d.MaxEntries}
	}
	return "TextSetting", map[string]any{"type": "string"}
}

// describeSettings adds the declared settings to the joined files of one kind.
func describeSettings(kind string, whole map[string]any) {
	if kind == "schemas" {
		schemas, _ := whole["schemas"].(map[string]any)
		describeResponse(schemas)
		return
	}
	operations, _ := whole["operations"].(map[string]any)
	if change, ok := operations["PATCH /admin/settings"].(map[string]any); ok {
		change["json"] = map[string]any{"type": "object", "minProperties": 1, "properties": changeProperties()}
	}
}

// describeResponse adds AdminSettings, and the schemas of its settings by kind.
func describeResponse(schemas map[string]any) {
	properties, names := map[string]any{}, []string{}
	for _, d := range host.DeclaredSettings() {
		name, value := settingSchema(d)
		properties[d.Name] = name
		names = append(names, d.Name)
		schemas[name] = map[string]any{
			"type": "object", "required": []string{"value", "source", "locked"}, "additionalProperties": false,
			"properties": map[string]any{
				"value":          value,
				"source":         map[string]any{"enum": []string{"option", "store", "default"}},
				"locked":         map[string]any{"type": "boolean", "description": "An option of the application sets it: it cannot be changed here."},
				"locked_because": "string",
			},
		}
	}
	schemas["AdminSettings"] = map[string]any{
		"type": "object", "required": []string{"revision", "settings"}, "additionalProperties": false,
		"properties": map[string]any{
			"revision": map[string]any{"type": "integer", "description": "Rises with every change; also the ETag, for If-Match."},
			"settings": map[string]any{"type": "object", "required": names, "additionalProperties": false, "properties": properties},
		},
	}
}

// changeProperties are the properties of a change: each value, or null.
func changeProperties() map[string]any {
	properties := map[string]any{}
	for _, d := range host.DeclaredSettings() {
		_, schema := settingSchema(d)
		schema["type"], schema["description"] = []any{schema["type"], "null"}, d.Description
		properties[d.Name] = schema
	}
	return properties
}
