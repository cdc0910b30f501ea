package auth

import "strings"

// deviceLabel is what people call the device behind a user agent, such as
// "Firefox on Linux"; "" if it does not say. It is a hint for people, made of
// fixed words, so that nothing that a stranger wrote is shown as ours.
func deviceLabel(userAgent string) string {
	first := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Contains(userAgent, pairs[i]) {
				return pairs[i+1]
			}
		}
		return ""
	}
	// Browsers name their ancestors, too, so the youngest comes first.
	browser := first("Edg", "Edge", "OPR/", "Opera", "SamsungBrowser", "Samsung Internet", "Firefox", "Firefox", "FxiOS", "Firefox",
		"CriOS", "Chrome", "Chrome", "Chrome", "Safari", "Safari", "curl/", "curl", "Go-http-client", "a program")
	system := first("iPhone", "iPhone", "iPad", "iPad", "Android", "Android", "CrOS", "ChromeOS", "Windows", "Windows", "Mac OS X", "macOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	}
	return system
}
