package store

// Kind names a message and its template.
type Kind string

// The messages that are sent.
const (
	KindVerifyEmail     Kind = "verify_email"     // confirm the address of a new account
	KindChangeEmail     Kind = "change_email"     // confirm a new address, sent to it
	KindMagicLink       Kind = "magic_link"       // sign in
	KindResetPassword   Kind = "reset_password"   // choose a new password
	KindWelcome         Kind = "welcome"          // choose a first password
	KindAccountExists   Kind = "account_exists"   // somebody signed up with an address that has an account
	KindPasswordChanged Kind = "password_changed" // notice
	KindEmailChanged    Kind = "email_changed"    // notice, sent to the old address
	KindMFAEnabled      Kind = "mfa_enabled"      // notice

	KindEmailChangeRequested Kind = "email_change_requested" // notice, sent to the present address when another one is asked for

	KindMFADisabled Kind = "mfa_disabled" // notice
	KindPhoneCode   Kind = "phone_code"   // text message

	KindTakenOver         Kind = "account_taken_over"   // notice: an unproved account went to its owner
	KindManyFailedSignIns Kind = "many_failed_sign_ins" // notice: many wrong guesses in a row

	KindIdentityLinked   Kind = "identity_linked"   // notice
	KindIdentityUnlinked Kind = "identity_unlinked" // notice
	KindPhoneChanged     Kind = "phone_changed"     // notice: a number was added or replaced

	KindRecoveryCodeUsed      Kind = "recovery_code_used"      // notice
	KindRecoveryCodesReplaced Kind = "recovery_codes_replaced" // notice

	KindNewDevice Kind = "new_device" // notice: a sign-in on a device that the account was not seen on

	KindTestMail     Kind = "test_mail"    // an operator tries out the Mailer
	KindTestSMS      Kind = "test_sms"     // text message: an operator tries out the SMSSender
	KindImpersonated Kind = "impersonated" // notice: somebody of the service acts as the user
	KindInvitation   Kind = "invitation"   // make an account, or take roles; sent for an operator

	KindAccountDeleted Kind = "account_deleted" // notice, sent to the address that the account had proved
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		KindVerifyEmail, KindChangeEmail, KindMagicLink, KindResetPassword, KindWelcome, KindInvitation, KindAccountExists, KindPasswordChanged, KindEmailChanged, KindEmailChangeRequested, KindMFAEnabled, KindMFADisabled, KindTakenOver, KindIdentityLinked, KindIdentityUnlinked, KindPhoneChanged, KindNewDevice, KindAccountDeleted, KindImpersonated,
		KindRecoveryCodeUsed, KindRecoveryCodesReplaced, KindManyFailedSignIns, KindPhoneCode, KindTestMail, KindTestSMS,
	}
}

// Channel is the way a message travels.
type Channel string

// The channels.
const (
	ChannelEmail Channel = "email"
	ChannelSMS   Channel = "sms"
)
