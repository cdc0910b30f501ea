package pages

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/store"
)

func is(err error, codes ...auth.Code) bool {
	return slices.ContainsFunc(codes, func(c auth.Code) bool { return errors.Is(err, c) })
}

func showAccount(v *visit) error {
	v.Wide = true
	v.Providers = v.p.providers(v.Settings.Providers, v.user.Identities)
	v.Deletable = v.p.a.Settings(v.ctx).AccountDeletion.On() && !v.isActing()
	if err := v.listPasskeys(); err != nil {
		return err
	}
	if !v.isActing() {
		if err := v.countCodes(); err != nil {
			return err
		}
		withheld, err := v.p.kit.WithheldIn(v.ctx, v.user, v.session)
		if err != nil {
			return err
		}
		v.Withheld = strings.Join(withheld, ", ")
		if v.Waits, err = v.waits(); err != nil {
			return err
		}
	}
	if _, entered := v.values["full_name"]; !entered {
		v.values["full_name"] = v.User.FullName
	}
	list, err := v.p.a.Sessions(v.ctx, auth.SessionsParams{UserID: v.user.ID, Current: v.claims.SessionID})
	if err != nil {
		return err
	}
	for _, s := range list {
		d := Device{ID: s.ID, LastActive: s.LastActiveAt.UTC().Format(v.texts.Of("time.layout")), Current: s.Current}
		d.Name = cmp.Or(s.Device, v.texts.Of("devices.unknown"))
		if s.ImpersonatedBy != "" {
			d.Name = v.texts.Of("devices.operator", "device", d.Name)
		}
		if s.IP.IsValid() {
			d.IP = s.IP.String()
		}
		v.Devices = append(v.Devices, d)
	}
	slices.SortStableFunc(v.Devices, func(a, b Device) int { return order(a.Current) - order(b.Current) })
	return nil
}

// waits reports whether the account waits for an acceptance. The visit's user lacks the
// roles that wait.
func (v *visit) waits() (bool, error) {
	table, err := v.p.kit.Roles(v.ctx)
	if err != nil {
		return false, err
	}
	u, err := v.p.kit.Store().User(v.ctx, store.ByID(v.user.ID))
	if err != nil {
		return false, v.p.kit.StoreError(err)
	}
	return v.p.kit.Standing(table, u).Waits, nil
}

func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

// done returns the path of the account, which then shows a notice.
func (v *visit) done(notice string) string {
	v.flow.Notice = notice
	return v.p.path("/")
}

func postProfile(v *visit) (string, error) {
	name := strings.TrimSpace(v.form.Get("full_name"))
	_, err := v.p.a.UpdateMe(v.ctx, auth.UpdateMeParams{Caller: v.claims.Caller(), FullName: &name})
	return v.done("saved"), err
}

func postSessions(v *visit) (string, error) {
	by := v.claims.Caller()
	if id := v.form.Get("id"); id != "" {
		return v.done("signed_out_device"), v.p.a.EndSession(v.ctx, auth.EndSessionParams{Caller: by, TargetSessionID: id})
	}
	return v.done("signed_out_device"), v.p.a.Logout(v.ctx, auth.LogoutParams{Caller: by, Scope: auth.LogoutOthers})
}

// postConfirmEmail verifies the account's email address with the mailed code, or sends
// another one.
func postConfirmEmail(v *visit) (string, error) {
	v.flow.Address = v.user.Email
	if v.form.Has("code") {
		return postAddressCode("/")(v)
	}
	return v.p.path("/email/code"), v.p.a.StartEmailVerification(v.ctx, auth.StartEmailVerificationParams{Caller: v.claims.Caller()})
}

func showPassword(v *visit) error {
	if !v.Settings.Methods.Password {
		return auth.Reject(auth.CodeMethodDisabled, "")
	}
	v.Username = v.user.Email
	if v.Username == "" {
		v.Username = v.user.Phone
	}
	return nil
}

func postPassword(v *visit) (string, error) {
	err := v.p.a.ChangePassword(v.ctx, auth.ChangePasswordParams{
		Caller: v.claims.Caller(), Current: v.form.Get("current_password"), New: v.form.Get("password"),
	})
	return v.done("password"), err
}

func postEmail(v *visit) (string, error) {
	address := strings.TrimSpace(v.form.Get("email"))
	_, err := v.p.a.UpdateMe(v.ctx, auth.UpdateMeParams{Caller: v.claims.Caller(), Email: &address})
	v.flow.Address = address
	return v.p.path("/email/code"), err
}

func postPhone(v *visit) (string, error) {
	phone := strings.TrimSpace(v.form.Get("phone"))
	if _, err := v.p.a.UpdateMe(v.ctx, auth.UpdateMeParams{Caller: v.claims.Caller(), Phone: &phone}); err != nil {
		return "", err
	}
	v.flow.Channel, v.flow.Address, v.flow.RequestID = "phone", phone, ""
	return v.p.path("/phone/code"), nil
}

func showPhoneCode(v *visit) error {
	if v.flow.Address == "" {
		return goTo(v.p.path("/phone"))
	}
	v.Channel, v.Address, v.SendAgain = "phone", v.flow.Address, v.p.path("/phone")
	return nil
}

func postPhoneCode(v *visit) (string, error) {
	_, err := v.p.a.ConfirmPhone(v.ctx, auth.ConfirmPhoneParams{Caller: v.claims.Caller(), Phone: v.flow.Address, Code: address.Code(v.form.Get("code"))})
	if err != nil {
		return "", err
	}
	v.flow = flow{}
	return v.done("phone"), nil
}

func showDelete(v *visit) error {
	if !v.p.a.Settings(v.ctx).AccountDeletion.On() {
		return auth.Reject(auth.CodeNotFound, "")
	}
	return nil
}

func postDelete(v *visit) (string, error) {
	if v.form.Get("sure") == "" {
		return "", v.p.kit.Invalid("sure", "is required")
	}
	if err := v.p.a.DeleteUser(v.ctx, auth.DeleteUserParams{Caller: v.claims.Caller()}); err != nil {
		return "", err
	}
	v.p.kit.ClearCookies(v.w, v.r)
	v.flow = flow{Notice: "deleted"}
	return v.p.path("/sign-in"), nil
}
