package auth

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The objects that are written most often append themselves: encoding/json would
// look each field up, box it, and go over what a MarshalJSON wrote once more.

// appender appends its own JSON, as json.Marshal would write it.
type appender interface {
	appendJSON(b []byte) ([]byte, error)
}

// appendEncoded appends what json.Marshal would write.
func appendEncoded(b []byte, v any) ([]byte, error) {
	if a, ok := v.(appender); ok {
		return a.appendJSON(b)
	}
	raw, err := json.Marshal(v)
	return append(b, raw...), err
}

// appendJSON appends the User object.
func (u User) appendJSON(b []byte) ([]byte, error) {
	o := object{b: b}
	o.text("id", u.ID)
	o.orNull("email", u.Email)
	o.yes("email_verified", u.EmailVerified())
	o.orNull("phone", u.Phone)
	o.yes("phone_verified", u.PhoneVerified())
	o.orNull("full_name", u.FullName)
	o.members("user_metadata", u.UserMetadata)
	o.members("app_metadata", u.AppMetadata)
	list(&o, "roles", u.Roles)
	o.yes("mfa_enabled", u.MFAEnabled)
	list(&o, "identities", u.Identities)
	o.time("created_at", u.CreatedAt)
	o.time("updated_at", u.UpdatedAt)
	o.timeOrNull("last_sign_in_at", u.LastSignInAt)
	o.timeOrNull("banned_until", u.BannedUntil)
	return o.end()
}

// appendJSON appends the wire's Session object.
func (t Tokens) appendJSON(b []byte) ([]byte, error) {
	o := object{b: b}
	t.members(&o)
	return o.end()
}

func (t Tokens) members(o *object) {
	o.orNull("access_token", t.AccessToken)
	o.text("token_type", "bearer")
	o.number("expires_in", int64(t.ExpiresIn))
	o.number("expires_at", t.ExpiresAt.Unix())
	o.orNull("refresh_token", t.RefreshToken)
	o.name("user")
	user, err := t.User.appendJSON(o.b)
	if o.b = user; err != nil && o.err == nil {
		o.err = err
	}
	if t.RecoveryCodesLeft != nil {
		o.number("recovery_codes_left", int64(*t.RecoveryCodesLeft))
	}
}

// object is a JSON object in the making.
type object struct {
	b    []byte
	some bool // it has members
	err  error
}

func (o *object) name(name string) {
	if o.some {
		o.b = append(o.b, ',')
	} else {
		o.b, o.some = append(o.b, '{'), true
	}
	o.string(name)
	o.b = append(o.b, ':')
}

func (o *object) string(s string) {
	if plain(s) {
		o.b = append(append(append(o.b, '"'), s...), '"')
		return
	}
	o.encoded(s)
}

func (o *object) end() ([]byte, error) {
	if !o.some {
		o.b = append(o.b, '{')
	}
	return append(o.b, '}'), o.err
}

func (o *object) text(name, value string) {
	o.name(name)
	o.string(value)
}

func (o *object) number(name string, n int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

// plain tells whether a string stands for itself.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || strings.IndexByte(`"\<>&`, c) >= 0 || c == 0x7f {
			return false
		}
	}
	return true
}

// encoded appends what encoding/json makes of a value.
func (o *object) encoded(value any) {
	v, err := json.Marshal(value)
	o.b = append(o.b, v...)
	if err != nil && o.err == nil {
		o.err = err
	}
}

func (o *object) any(name string, value any) {
	o.name(name)
	o.encoded(value)
}

func (o *object) orNull(name, value string) {
	if value == "" {
		o.name(name)
		o.b = append(o.b, "null"...)
		return
	}
	o.text(name, value)
}

func (o *object) yes(name string, value bool) {
	o.name(name)
	if value {
		o.b = append(o.b, "true"...)
	} else {
		o.b = append(o.b, "false"...)
	}
}

func (o *object) time(name string, t time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	b, err := wireTime(t).AppendText(o.b)
	if err != nil {
		o.err = err
		return
	}
	o.b = append(b, '"')
}

func (o *object) timeOrNull(name string, t time.Time) {
	if t.IsZero() {
		o.orNull(name, "")
		return
	}
	o.time(name, t)
}

func (o *object) members(name string, m map[string]any) {
	o.name(name)
	if len(m) == 0 {
		o.b = append(o.b, "{}"...)
		return
	}
	o.encoded(m)
}

func list[T any](o *object, name string, items []T) {
	o.name(name)
	if len(items) == 0 {
		o.b = append(o.b, "[]"...)
		return
	}
	o.encoded(items)
}
