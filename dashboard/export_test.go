package dashboard

// Forms are the paths of all forms.
func Forms() []string {
	var list []string
	for _, rt := range routes() {
		if rt.form != nil {
			list = append(list, rt.at)
		}
	}
	return list
}

// Routes are the paths of all pages, with their methods.
func Routes() map[string][]string {
	all := map[string][]string{}
	for _, rt := range routes() {
		all[rt.at] = rt.methods()
	}
	return all
}
