package auth

// View is what the wire shows of the user.
func (u User) View() User { return u }
