package pages

import "testing"

// All routes of one page set the same data, also those that only accept posts.
func TestRoutesOfAPageAreShown(t *testing.T) {
	shown := map[string]map[bool][]string{}
	for _, rt := range (&Pages{}).routes() {
		if shown[rt.page] == nil {
			shown[rt.page] = map[bool][]string{}
		}
		shown[rt.page][rt.show != nil] = append(shown[rt.page][rt.show != nil], rt.at)
	}
	if len(shown["account"][true]) < 5 {
		t.Errorf("%v", shown["account"])
	}
	for page, by := range shown {
		if page != "problem" && len(by[true]) > 0 && len(by[false]) > 0 {
			t.Errorf("%s is drawn with what it shows at %v, and without at %v", page, by[true], by[false])
		}
	}
}
