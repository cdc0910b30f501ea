package store

// Kind names a message and its template.
type Kind string

// The kinds of messages.
const (
	KindVerifyEmail     Kind = "verify_email"     // verify the email address of a new account
	KindChangeEmail     Kind = "change_email"     // verify a new email address, sent to it
	KindMagicLink       Kind = "magic_link"       // sign in
	KindResetPassword   Kind = "reset_password"   // choose a new password
	KindWelcome         Kind = "welcome"          // choose a first password
	KindAccountExists   Kind = "account_exists"   // a sign-up with an email address that has an account
	KindPasswordChanged Kind = "password_changed" // notice
	KindEmailChanged    Kind = "email_changed"    // notice, sent to the old email address
	KindMFAEnabled      Kind = "mfa_enabled"      // notice

	KindEmailChangeRequested Kind = "email_change_requested" // notice, sent to the current email address when a change is requested

	KindMFADisabled Kind = "mfa_disabled" // notice
	KindTOTPRemoved Kind = "totp_removed" // notice: the authenticator app is gone, another second factor is left
	KindPhoneCode   Kind = "phone_code"   // text message

	KindTakenOver         Kind = "account_taken_over"   // notice: an unverified account went to its owner
	KindManyFailedSignIns Kind = "many_failed_sign_ins" // notice: many failed sign-ins in a row

	KindIdentityLinked   Kind = "identity_linked"   // notice
	KindIdentityUnlinked Kind = "identity_unlinked" // notice
	KindPasskeyAdded     Kind = "passkey_added"     // notice
	KindPasskeyRemoved   Kind = "passkey_removed"   // notice
	KindPasskeyCopied    Kind = "passkey_copied"    // notice: a passkey of one device may have been copied
	KindPhoneChanged     Kind = "phone_changed"     // notice: a phone number was added or replaced

	KindRecoveryCodeUsed      Kind = "recovery_code_used"      // notice
	KindRecoveryCodesReplaced Kind = "recovery_codes_replaced" // notice

	KindNewDevice Kind = "new_device" // notice: a sign-in on a device that is new to the account

	KindTestMail     Kind = "test_mail"    // an operator tests the Mailer
	KindTestSMS      Kind = "test_sms"     // text message: an operator tests the SMSSender
	KindImpersonated Kind = "impersonated" // notice: an operator acts as the user

	KindAccountUnlocked Kind = "account_unlocked" // notice: an operator let more attempts through after failures
	KindInvitation      Kind = "invitation"       // create an account, or accept roles; sent for an operator

	KindAccountCreated Kind = "account_created" // notice: an operator created the account
	KindAccountDeleted Kind = "account_deleted" // notice, sent to the account's verified email address
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		KindVerifyEmail, KindChangeEmail, KindMagicLink, KindResetPassword, KindWelcome, KindInvitation, KindAccountExists, KindPasswordChanged, KindEmailChanged, KindEmailChangeRequested, KindMFAEnabled, KindMFADisabled, KindTOTPRemoved, KindTakenOver, KindIdentityLinked, KindIdentityUnlinked, KindPasskeyAdded, KindPasskeyRemoved, KindPasskeyCopied, KindPhoneChanged, KindNewDevice, KindAccountDeleted, KindImpersonated, KindAccountCreated, KindAccountUnlocked,
		KindRecoveryCodeUsed, KindRecoveryCodesReplaced, KindManyFailedSignIns, KindPhoneCode, KindTestMail, KindTestSMS,
	}
}

// Channel is the medium that delivers a message.
type Channel string

// The channels.
const (
	ChannelEmail Channel = "email"
	ChannelSMS   Channel = "sms"
)
