// Package phonecheck judges phone numbers by the numbering plans of all countries.
//
//	auth.WithPhone(auth.PhoneOptions{Possible: phonecheck.Possible})
//
// The plans are those of libphonenumber, which grow a program by 6 MB. They are a package of
// their own, so that only programs that import it pay for them. The form in which numbers
// are stored and found does not depend on it.
package phonecheck

import "github.com/nyaruka/phonenumbers"

// Possible reports whether a phone number in E.164 has a country code that exists and as
// many digits as numbers of that country. It does not judge whether the number is in use,
// because plans change faster than programs.
func Possible(phone string) bool {
	number, err := phonenumbers.Parse(phone, "ZZ") // ZZ: the country code is required
	return err == nil && phonenumbers.IsPossibleNumberWithReason(number) == phonenumbers.IS_POSSIBLE
}
