package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/authmount/auth/internal/token"
)

// maxStreams bounds the goroutines and connections of services that follow revocations.
const maxStreams = 200

// streams are the streams of revocations that this process serves.
type streams struct {
	log *token.Log

	mu      sync.Mutex
	count   int
	closed  bool
	servers map[*http.Server]ending
}

// ending is the end of all streams of a server.
type ending struct {
	context.Context
	now context.CancelFunc
}

var errTooManyStreams = errors.New("too many streams of revocations, or the service is closed")

// begin counts a stream. A server's Shutdown waits for requests, so it has to end the
// streams first.
func (s *streams) begin(r *http.Request) (context.Context, func(), error) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server) // nil for servers of other kinds
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.count >= maxStreams {
		return nil, nil, retryAfter(CodeUnavailable, time.Second, errTooManyStreams)
	}
	end, known := s.servers[server]
	if !known {
		end.Context, end.now = context.WithCancel(context.Background())
		if s.servers == nil {
			s.servers = map[*http.Server]ending{}
		}
		s.servers[server] = end
		if server != nil {
			server.RegisterOnShutdown(end.now)
		}
	}
	s.count++
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(end, cancel)
	return ctx, func() {
		stop()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count--
	}, nil
}

func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, end := range s.servers {
		end.now()
	}
}

func (k kit) RevocationLog() (*token.Log, time.Duration, error) {
	age, current := k.a.streams.log.Age()
	if !current {
		return nil, 0, retryAfter(CodeRevocationsUnavailable, time.Second, errNoFeed)
	}
	return k.a.streams.log, age, nil
}

var errNoFeed = errors.New("no feed reports revocations to this process: the store's WatchRevocations does not run here, or has lost the database")

func (k kit) BeginStream(r *http.Request) (context.Context, func(), error) {
	return k.a.streams.begin(r)
}
