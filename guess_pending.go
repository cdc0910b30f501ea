package auth

import "sync"

// pendingGuesses are the guesses that are drawn and not judged yet, by what they are
// about. A right one gives its try back, so that a guess that finds none left
// waits for those before it.
type pendingGuesses struct {
	mu sync.Mutex
	of map[string]*pendingGuess
}

// pendingGuess is all that go on about one thing.
type pendingGuess struct {
	joined  int
	turn    chan struct{} // held by the one that draws
	judging int           // how many have drawn, and are not over
	ended   chan struct{} // closed when one of those has ended
}

// join adds one to the guesses about key, until leave.
func (p *pendingGuesses) join(key string) *pendingGuess {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[key] == nil {
		p.of[key] = &pendingGuess{turn: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	p.of[key].joined++
	return p.of[key]
}

// leave undoes join; drawn tells that the guess had drawn.
func (p *pendingGuesses) leave(key string, drawn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.of[key]
	if drawn {
		at.judging--
		close(at.ended)
		at.ended = make(chan struct{})
	}
	if at.joined--; at.joined == 0 {
		delete(p.of, key)
	}
}

// drew counts a guess that has drawn.
func (p *pendingGuesses) drew(at *pendingGuess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.judging++
}

// others is closed when one of the guesses that have drawn ends; nil if there are
// none.
func (p *pendingGuesses) others(at *pendingGuess) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.judging == 0 {
		return nil
	}
	return at.ended
}
