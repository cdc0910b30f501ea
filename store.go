package auth

import "github.com/authmount/auth/store"

// The types of package store that applications meet; go doc store.User shows the fields
// of User, and so on. The rest of the contract is for authors of stores.
type (
	Store      = store.Store
	User       = store.User
	Identity   = store.Identity
	Session    = store.Session
	SessionRef = store.SessionRef
	AMR        = store.AMR
	Factor     = store.Factor
	Held       = store.Held
	Client     = store.Client
	Rate       = store.Rate
	KeyRef     = store.KeyRef
	UserAt     = store.UserAt
	Authority  = store.Authority
	Actor      = store.Actor
	Event      = store.Event
	EventType  = store.EventType
	Kind       = store.Kind
	Channel    = store.Channel
)

// RoleOwner is the role that permits everything.
const RoleOwner = store.RoleOwner

// The kinds of actors, for Event.Actor.
const (
	ActorUser     = store.ActorUser
	ActorKey      = store.ActorKey
	ActorSystem   = store.ActorSystem
	ActorExternal = store.ActorExternal
)

// The types of events.
const (
	EventSignedUp              = store.EventSignedUp
	EventSignedIn              = store.EventSignedIn
	EventSignInFailed          = store.EventSignInFailed
	EventRefreshed             = store.EventRefreshed
	EventReused                = store.EventReused
	EventReplayed              = store.EventReplayed
	EventNewDevice             = store.EventNewDevice
	EventSessionsEnded         = store.EventSessionsEnded
	EventEmailVerified         = store.EventEmailVerified
	EventEmailChanged          = store.EventEmailChanged
	EventUserUpdated           = store.EventUserUpdated
	EventUserImported          = store.EventUserImported
	EventUserDeleted           = store.EventUserDeleted
	EventPasswordChanged       = store.EventPasswordChanged
	EventPasswordReset         = store.EventPasswordReset
	EventTakenOver             = store.EventTakenOver
	EventAccountSecured        = store.EventAccountSecured
	EventMessageFailed         = store.EventMessageFailed
	EventPhoneVerified         = store.EventPhoneVerified
	EventMFAEnabled            = store.EventMFAEnabled
	EventMFADisabled           = store.EventMFADisabled
	EventRecoveryCodeUsed      = store.EventRecoveryCodeUsed
	EventRecoveryCodesReplaced = store.EventRecoveryCodesReplaced
	EventSessionConfirmed      = store.EventSessionConfirmed
	EventSMSBudgetExceeded     = store.EventSMSBudgetExceeded
	EventUserBanned            = store.EventUserBanned
	EventUserUnbanned          = store.EventUserUnbanned
	EventRolesChanged          = store.EventRolesChanged
	EventRoleChanged           = store.EventRoleChanged
	EventRoleDeleted           = store.EventRoleDeleted
	EventKeyCreated            = store.EventKeyCreated
	EventKeyChanged            = store.EventKeyChanged
	EventKeyRotated            = store.EventKeyRotated
	EventKeyRevoked            = store.EventKeyRevoked
	EventSettingsChanged       = store.EventSettingsChanged
	EventSettingsTested        = store.EventSettingsTested
	EventAdminDenied           = store.EventAdminDenied
	EventUserCreated           = store.EventUserCreated
	EventUserUnlocked          = store.EventUserUnlocked
	EventPhoneChanged          = store.EventPhoneChanged
	EventAuditExported         = store.EventAuditExported
	EventJobStarted            = store.EventJobStarted
	EventImpersonationBegun    = store.EventImpersonationBegun
	EventImpersonationEnded    = store.EventImpersonationEnded
	EventLinkMade              = store.EventLinkMade
	EventMessageAsked          = store.EventMessageAsked
	EventUserAnonymized        = store.EventUserAnonymized
	EventUserExported          = store.EventUserExported
	EventUsersExported         = store.EventUsersExported
	EventInvited               = store.EventInvited
	EventInvitationWithdrawn   = store.EventInvitationWithdrawn
	EventInvitationAccepted    = store.EventInvitationAccepted
	EventIdentityLinked        = store.EventIdentityLinked
	EventIdentityUnlinked      = store.EventIdentityUnlinked
)

// The kinds of messages.
const (
	KindVerifyEmail           = store.KindVerifyEmail
	KindChangeEmail           = store.KindChangeEmail
	KindMagicLink             = store.KindMagicLink
	KindResetPassword         = store.KindResetPassword
	KindWelcome               = store.KindWelcome
	KindAccountExists         = store.KindAccountExists
	KindPasswordChanged       = store.KindPasswordChanged
	KindEmailChanged          = store.KindEmailChanged
	KindMFAEnabled            = store.KindMFAEnabled
	KindEmailChangeRequested  = store.KindEmailChangeRequested
	KindMFADisabled           = store.KindMFADisabled
	KindPhoneCode             = store.KindPhoneCode
	KindTakenOver             = store.KindTakenOver
	KindManyFailedSignIns     = store.KindManyFailedSignIns
	KindIdentityLinked        = store.KindIdentityLinked
	KindIdentityUnlinked      = store.KindIdentityUnlinked
	KindPhoneChanged          = store.KindPhoneChanged
	KindRecoveryCodeUsed      = store.KindRecoveryCodeUsed
	KindRecoveryCodesReplaced = store.KindRecoveryCodesReplaced
	KindNewDevice             = store.KindNewDevice
	KindTestMail              = store.KindTestMail
	KindTestSMS               = store.KindTestSMS
	KindImpersonated          = store.KindImpersonated
	KindInvitation            = store.KindInvitation
	KindAccountDeleted        = store.KindAccountDeleted
)

// The channels of messages.
const (
	ChannelEmail = store.ChannelEmail
	ChannelSMS   = store.ChannelSMS
)
