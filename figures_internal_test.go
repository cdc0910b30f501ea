package auth

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// Figures that nothing else shows, or by their names only: whoever changes one means to,
// and changes what is told of it, too.
func TestFiguresAreAsDecided(t *testing.T) {
	const day = 24 * time.Hour
	for what, c := range map[string]struct{ is, want time.Duration }{
		"events are kept, by default":                           {defaultRetention, 90 * day},
		"captchas of an address are counted":                    {captchaPeriod, 5 * time.Minute},
		"the link for the first owner":                          {firstOwnerLife, 30 * time.Minute},
		"a guess, from the draw to the end":                     {guessTimeout, 30 * time.Second},
		"a run of failures at nobody's name":                    {runOfNames, day},
		"tries at a code stay used up":                          {codeTriesFor, day},
		"what no guess took along waits to be given back":       {refundAfter, time.Second},
		"the statement that gives back":                         {refundTimeout, 10 * time.Second},
		"between two looks at the settings":                     {settingsEvery, 900 * time.Millisecond},
		"a look at the settings":                                {settingsWait, 5 * time.Second},
		"a message without a token is worth sending":            {noticeLife, 3 * day},
		"what became of a message is told":                      {store.MessageLogLife, 7 * day},
		"somebody is at the provider":                           {oauthLife, 10 * time.Minute},
		"a provider is waited for, by default":                  {providerTimeout, 10 * time.Second},
		"a token of a provider's is remembered":                 {maxIDTokenLife, 30 * day},
		"a link to sign in":                                     {magicLife, 15 * time.Minute},
		"a link to confirm an address":                          {verifyLife, day},
		"a link to choose a new password":                       {resetLife, time.Hour},
		"a link to choose the first password":                   {welcomeLife, 7 * day},
		"a code in a mail (NIST SP 800-63B-4: 10 min)":          {mailCodeLife, 10 * time.Minute},
		"a link that stops a change":                            {stopLife, 7 * day},
		"an invitation, by default":                             {invitationLife, 7 * day},
		"a sign-in is fresh":                                    {freshFor, 15 * time.Minute},
		"the second factor is waited for":                       {mfaLife, 5 * time.Minute},
		"somebody is impersonated":                              {ImpersonationLife, 15 * time.Minute},
		"the shortest session that the store can ask for":       {leastLife, 5 * time.Minute},
		"a device is remembered":                                {store.DeviceLife, 400 * day},
		"a device can be trusted":                               {store.MaxTrust, 30 * day},
		"between two outdated refresh tokens that are let pass": {store.ReplayGap, day},
		"a body is waited for":                                  {bodyWait, 10 * time.Second},
		"a test message is waited for":                          {testWait, 10 * time.Second},
		"public keys are remembered":                            {publicKeysFor, time.Second / 2},
		"between two sweeps":                                    {sweepEvery, time.Minute},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want time.Time }{
		"whoever was anonymised is banned": {store.AnonymizedUntil(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)},
	} {
		if !c.is.Equal(c.want) {
			t.Errorf("%s until %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want int }{
		"bytes of a captcha's token":                      {maxCaptcha, 8 << 10},
		"captchas of an address":                          {captchasPerIP, 60},
		"times as many failures from an address":          {perAddressMore, 3},
		"failures in a row of which the owner is told":    {tellAtRun, 20},
		"wrong guesses that a code survives":              {maxCodeTries, 5},
		"of all who name requests":                        {codeBackstop, 50},
		"what a guess gives back":                         {refundsAtOnce, 16},
		"what a statement gives back":                     {refundsBatch, 256},
		"what waits to be given back":                     {refundsAtMost, 16384},
		"what a sweep takes at once":                      {sweepBatch, 1000},
		"users of a step of an import":                    {importBatch, 500},
		"events of a page of an export":                   {exportPage, 500},
		"messages of an inbox":                            {inboxSize, 200},
		"bytes of a path that tells of a mount":           {maxMissed, 256},
		"bytes of Accept-Language":                        {maxLanguages, 256},
		"bytes of a password":                             {maxPasswordBytes, 4096},
		"entries of a list of the settings":               {maxSettingList, 50},
		"ids of a query":                                  {store.MaxQueryIDs, 200},
		"events of a page, by default":                    {store.DefaultEventLimit, 50},
		"devices of a user":                               {store.MaxDevices, 50},
		"the shortest id of a device":                     {minDeviceID, 16},
		"the longest id of a device":                      {maxDeviceID, 128},
		"characters of a name":                            {maxName, 200},
		"bytes of metadata":                               {maxMetadata, 16 << 10},
		"bytes of a secret of a second factor (RFC 4226)": {totpSecret, 20},
		"seconds of a step of a second factor (RFC 6238)": {totpPeriod, 30},
		"steps of a second factor either way":             {totpSkew, 1},
		"recovery codes":                                  {recoveryN, 10},
		"characters of a recovery code":                   {recoveryLen, 10},
		"tries at a message that a store keeps":           {keptAttempts, 20},
		"bytes of a subject at a provider":                {maxSubject, 255},
		"a switch that is on":                             {int(On), 1},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", what, c.is, c.want)
		}
	}
}
