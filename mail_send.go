package auth

import (
	"context"
	"errors"
)

// sendDraws are the limits on messages of a kind to an address.
func (a *Auth) sendDraws(k Kind, address string) []Draw {
	to := string(k) + " " + EmailKey(address)
	return []Draw{
		a.draw(a.cfg.limits.SendGap, "send-gap", to, 1),
		a.draw(a.cfg.limits.SendPerAddress, "send", to, 1),
	}
}

// takeSend draws for a message that somebody asked for. It comes before any
// look-up, so that unknown addresses count the same.
func (a *Auth) takeSend(ctx context.Context, k Kind, address string) error {
	draws := append(a.sendDraws(k, address), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip", 1))
	_, err := a.take(ctx, draws...)
	return err
}

// takeSMS draws for a text message: like any send, and from the budget that
// bounds what fraud can cost.
func (a *Auth) takeSMS(ctx context.Context, phone string) error {
	if err := a.takeSend(ctx, KindPhoneCode, phone); err != nil {
		return err
	}
	_, err := a.take(ctx, a.draw(a.cfg.limits.SMSBudget, "sms-budget", "", 1))
	if errors.Is(err, CodeRateLimited) {
		a.emit(ctx, Event{Type: EventSMSBudgetExceeded})
	}
	return err
}

// phoneMessage is a code on its way to a number; to none, it is a decoy.
func (a *Auth) phoneMessage(to, code string) outgoing {
	return outgoing{Kind: KindPhoneCode, Channel: ChannelSMS, To: to, Code: code, ExpiresIn: a.cfg.phone.Life}
}
