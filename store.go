package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"github.com/authmount/auth/store"
)

// The types of package store that applications use; go doc store.User shows the fields
// of User, and so on. The rest of the contract is for authors of stores.
type (
	Store       = store.Store
	User        = store.User
	Identity    = store.Identity
	Session     = store.Session
	SessionRef  = store.SessionRef
	AMR         = store.AMR
	Factor      = store.Factor
	UserRecords = store.UserRecords
	Client      = store.Client
	Rate        = store.Rate
	KeyRef      = store.KeyRef
	UserAt      = store.UserAt
	Authority   = store.Authority
	Actor       = store.Actor
	Event       = store.Event
	EventType   = store.EventType
	Kind        = store.Kind
	Channel     = store.Channel

	PasskeyRecord = store.PasskeyRecord
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
	EventPasskeyAdded          = store.EventPasskeyAdded
	EventPasskeyRemoved        = store.EventPasskeyRemoved
	EventTOTPRemoved           = store.EventTOTPRemoved

	EventPasskeyCounterNotIncreased = store.EventPasskeyCounterNotIncreased
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
	KindPasskeyAdded          = store.KindPasskeyAdded
	KindPasskeyRemoved        = store.KindPasskeyRemoved
	KindTOTPRemoved           = store.KindTOTPRemoved
	KindPasskeyCopied         = store.KindPasskeyCopied
	KindPhoneChanged          = store.KindPhoneChanged
	KindRecoveryCodeUsed      = store.KindRecoveryCodeUsed
	KindRecoveryCodesReplaced = store.KindRecoveryCodesReplaced
	KindNewDevice             = store.KindNewDevice
	KindTestMail              = store.KindTestMail
	KindTestSMS               = store.KindTestSMS
	KindImpersonated          = store.KindImpersonated
	KindAccountUnlocked       = store.KindAccountUnlocked
	KindAccountCreated        = store.KindAccountCreated
	KindInvitation            = store.KindInvitation
	KindAccountDeleted        = store.KindAccountDeleted
)

// The channels of messages.
const (
	ChannelEmail = store.ChannelEmail
	ChannelSMS   = store.ChannelSMS
)

// storePart is an optional interface of a store.
type storePart struct {
	face     reflect.Type
	features string // that need it
	has      func(Store) bool
}

func part[T any](features string) storePart {
	return storePart{reflect.TypeFor[T](), features, func(s Store) bool {
		_, ok := store.Capability[T](s)
		return ok
	}}
}

// storeParts returns the optional interfaces. The documentation of package store has the same list.
func storeParts() []storePart {
	return []storePart{
		part[store.FactorStore]("second factors, recovery codes"),
		part[store.Journal]("audit log, messages that outlive the process, message log, package admin"),
		part[store.ProjectStore]("permissions of roles, stored API keys, settings changed at run time, figures, package admin"),
		part[store.AdminStore]("package admin, impersonation, imports of many users in one step, Rotation"),
	}
}

// lacks returns the error of an operation or option that needs an interface that the
// store lacks.
func lacks[T any]() error {
	parts := storeParts()
	i := slices.IndexFunc(parts, func(p storePart) bool { return p.face == reflect.TypeFor[T]() })
	return fmt.Errorf("neither the store nor a store that it wraps implements %s, needed for: %s", parts[i].face, parts[i].features)
}

// noteStoreParts logs which interfaces the store lacks, and the features that are off
// because of that.
func (a *Auth) noteStoreParts(ctx context.Context) {
	var off []any
	for _, p := range storeParts() {
		if !p.has(a.store) {
			off = append(off, slog.String(p.face.String(), p.features))
		}
	}
	if len(off) > 0 {
		a.cfg.log.InfoContext(ctx, fmt.Sprintf("auth: the store %T lacks interfaces, and the features that need them are off", a.store), off...)
	}
}

// checkOptions refuses options that need an interface that the store lacks, and a
// required second factor when no kind is on.
func (a *Auth) checkOptions(c *config) {
	set := a.settings.options.base
	if a.factors == nil {
		for option, on := range map[string]bool{
			"WithSettings": set.MFARequired.On() || len(set.MFARequiredFor) > 0,
			"WithMFA":      c.mfa.RequiredFor != nil || c.mfa.TrustDevices > 0,
		} {
			if on {
				c.fail(option, lacks[store.FactorStore]())
			}
		}
	}
	if set.lacksFactorKind(c) {
		c.fail("WithSettings", errors.New(noFactorKind))
	}
	if c.audited && a.journal == nil {
		c.fail("WithAuditLog", lacks[store.Journal]())
	}
}
